import { compile, SESSION_MESSAGE_TYPE, SessionMessage } from '@workflow-service/contract'
import type { DeadLetterReason } from './session-queue.ts'

/** Why a message cannot be read. */
export interface MessageError {
  readonly reason: DeadLetterReason
  readonly detail: string
}

const isSessionMessage = compile(SessionMessage)

/**
 * Decodes a message's body. `type` is its AMQP property; a message without one counts as version 1. Implements contract
 * README, "Queue messages".
 */
export function decodeSessionMessage(
  body: string,
  type: unknown,
): { message: SessionMessage } | { error: MessageError } {
  if (type !== undefined && type !== null && type !== '' && type !== SESSION_MESSAGE_TYPE) {
    const detail = `The type is ${typeof type === 'string' ? JSON.stringify(type) : typeof type}; this version reads ${SESSION_MESSAGE_TYPE}`
    return { error: { reason: 'unknown_type', detail } }
  }
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    return { error: { reason: 'not_json', detail: 'The body is not JSON' } }
  }
  if (!isSessionMessage(value)) {
    const [violation] = isSessionMessage.errors ?? []
    const path = violation?.instancePath ? `${violation.instancePath.slice(1)} ` : ''
    const detail = `The body: ${path}${violation?.message ?? 'is not a session message'}`
    return { error: { reason: 'wrong_shape', detail } }
  }
  return { message: { session_id: value.session_id.toLowerCase() } }
}
