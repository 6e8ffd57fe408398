import { Closed, List, type Static } from './schema/objects.ts'
import { Uuid } from './schema/values.ts'

/** The durable queue of sessions with work (contract README, "Queue messages"). */
export const SESSIONS_QUEUE = 'workflow.sessions'

/** The queue of messages that cannot be read. */
export const SESSIONS_DEAD_LETTER_QUEUE = 'workflow.sessions.dead'

/** The AMQP `type` property of a session message. A message without a type is read as this one. */
export const SESSION_MESSAGE_TYPE = 'workflow.session.v1'

/** A message that a session has work; it may be lost, repeated or late (contract README, "Queue messages"). */
export const SessionMessage = Closed('SessionMessage', 'Notifies the runners; may be lost, repeated or late.', {
  session_id: Uuid('The session that has work.'),
})
export type SessionMessage = Static<typeof SessionMessage>

/** The AMQP `type` property of a message about several sessions. */
export const SESSIONS_MESSAGE_TYPE = 'workflow.session.v2'

/** The most sessions of one message. */
export const SESSIONS_MESSAGE_MAX = 128

/** The same for several sessions: one message for the starts that were recorded together. */
export const SessionsMessage = Closed('SessionsMessage', 'Notifies the runners of several sessions.', {
  session_ids: List(Uuid('A session that has work.'), 'The sessions.', { minItems: 1, maxItems: SESSIONS_MESSAGE_MAX }),
})
export type SessionsMessage = Static<typeof SessionsMessage>
