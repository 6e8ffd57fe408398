import type { FieldError } from '../errors.ts'
import { PAYLOAD_MAX_BYTES } from '../limits.ts'
import { describeMismatches, findPayloadMismatches } from './payload-mismatches.ts'

/**
 * Compares a payload with the source's example (contract README, "Payload request"). Returns the result of a delivery
 * that is not sent because of it, or undefined if the payload may be sent. `body` is the payload as JSON.
 */
export function checkPayload(example: Record<string, unknown>, payload: unknown, body: string) {
  const bytes = Buffer.byteLength(body)
  const mismatches = bytes > PAYLOAD_MAX_BYTES ? [tooLarge(bytes)] : findPayloadMismatches(example, payload)
  if (mismatches.length === 0) return undefined
  const reason = describeMismatches(mismatches)
  return { outcome: 'invalid' as const, status: null, reason, mismatches, duration_ms: null, answer: null }
}

function tooLarge(bytes: number): FieldError {
  const message = `must be at most ${PAYLOAD_MAX_BYTES.toLocaleString('en')} bytes of JSON; it has ${bytes.toLocaleString('en')}`
  return { field: 'body', code: 'too_large', message }
}
