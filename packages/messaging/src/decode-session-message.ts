import {
  compile,
  parseJson,
  SESSION_MESSAGE_TYPE,
  SessionMessage,
  SESSIONS_MESSAGE_TYPE,
  SessionsMessage,
} from '@workflow-service/contract'
import type { DeadLetterReason } from './session-queue.ts'

/** Why a message cannot be read. */
interface MessageError {
  readonly reason: DeadLetterReason
  readonly detail: string
}

const isSessionMessage = compile(SessionMessage)
const isSessionsMessage = compile(SessionsMessage)

/**
 * Decodes a message's body to its sessions. `type` is its AMQP property; a message without one counts as version 1.
 * Implements contract README, "Queue messages".
 */
export function decodeSessionMessage(
  body: string,
  type: unknown,
): { sessionIds: readonly string[] } | { error: MessageError } {
  const isOfSeveral = type === SESSIONS_MESSAGE_TYPE
  if (!isOfSeveral && ![undefined, null, '', SESSION_MESSAGE_TYPE].some((each) => each === type)) {
    const given = typeof type === 'string' ? JSON.stringify(type) : typeof type
    const detail = `The type is ${given}; this version reads ${SESSION_MESSAGE_TYPE} and ${SESSIONS_MESSAGE_TYPE}`
    return { error: { reason: 'unknown_type', detail } }
  }
  const value = parseJson(body)
  if (value === undefined) return { error: { reason: 'not_json', detail: 'The body is not JSON' } }
  if (isOfSeveral && isSessionsMessage(value)) return { sessionIds: value.session_ids.map((id) => id.toLowerCase()) }
  if (!isOfSeveral && isSessionMessage(value)) return { sessionIds: [value.session_id.toLowerCase()] }
  const [violation] = (isOfSeveral ? isSessionsMessage : isSessionMessage).errors ?? []
  const path = violation?.instancePath ? `${violation.instancePath.slice(1)} ` : ''
  const detail = `The body: ${path}${violation?.message ?? 'is not a session message'}`
  return { error: { reason: 'wrong_shape', detail } }
}

/** A property of a message that is a text. Any client of the broker may have set it to something else. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
