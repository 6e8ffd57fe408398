import { compile, SESSION_MESSAGE_TYPE, SessionMessage } from '@workflow-service/contract'
import type { DeadLetterReason } from './session-queue.ts'

/** Why a message cannot be read. */
export interface MessageFault {
  readonly reason: DeadLetterReason
  readonly detail: string
}

const isSessionMessage = compile(SessionMessage)

/** Reads a message's body; `type` is its AMQP property, and a message without one counts as version 1. */
export function decodeSessionMessage(
  body: string,
  type: unknown,
): { message: SessionMessage } | { fault: MessageFault } {
  if (type !== undefined && type !== null && type !== '' && type !== SESSION_MESSAGE_TYPE) {
    const detail = `The type is ${JSON.stringify(type)}; this version reads ${SESSION_MESSAGE_TYPE}`
    return { fault: { reason: 'unknown_type', detail } }
  }
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    return { fault: { reason: 'not_json', detail: 'The body is not JSON' } }
  }
  if (!isSessionMessage(value)) {
    const [error] = isSessionMessage.errors ?? []
    const where = error?.instancePath ? `${error.instancePath.slice(1)} ` : ''
    return {
      fault: { reason: 'wrong_shape', detail: `The body: ${where}${error?.message ?? 'is not a session message'}` },
    }
  }
  return { message: { session_id: value.session_id.toLowerCase() } }
}
