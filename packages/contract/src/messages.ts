import { type Static, Type } from 'typebox'
import { closed, Uuid } from './schema.ts'

/** Design 6: the durable queue of wake-ups, and where messages go that cannot be read. */
export const SESSIONS_QUEUE = 'workflow.sessions'
export const SESSIONS_DEAD_LETTER_QUEUE = 'workflow.sessions.dead'

/** The AMQP `type` property of a session message. A message without a type is read as this one. */
export const SESSION_MESSAGE_TYPE = 'workflow.session.v1'

/** "This session has something to run": no data that the database does not have (design 6.2). */
export const SessionMessage = Type.Object(
  { session_id: Uuid({ description: 'The session that has something to run.' }) },
  { ...closed, title: 'SessionMessage', description: 'A wake-up for the runners; may be lost, doubled or late.' },
)
export type SessionMessage = Static<typeof SessionMessage>
