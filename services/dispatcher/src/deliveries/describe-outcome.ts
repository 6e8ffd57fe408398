import type { VerificationReason } from '@workflow-service/contract'
import type { DeliveryResult } from '@workflow-service/database'
import { type SentResult, toSentence } from '../outbound/outbound-result.ts'
import type { Redact } from './redact.ts'

/** Returns the log entry for the result of a request: any 2xx is accepted (contract README, "Payload request"). */
export function toDeliveryResult(result: SentResult, redact: Redact): DeliveryResult {
  const { durationMs } = result
  if (result.kind !== 'answered') {
    const isUnknown = result.kind === 'unreachable' && result.isReused
    const reason = isUnknown ? REUSED_CONNECTION_ENDED : toSentence(redact(result.detail))
    return unanswered(isUnknown ? 'unknown' : result.kind, reason, durationMs)
  }
  const { status, location, text, rejection, headers } = result
  const isAccepted = isSuccess(status)
  return {
    outcome: isAccepted ? 'accepted' : 'rejected',
    status,
    reason: isAccepted ? null : describeRejection(status, location, redact),
    answer: text === null ? null : redact(text),
    rejected_answer: rejection === undefined ? null : redact(rejection),
    // An accepted request without a text, as most are, need not wait for the search for secrets.
    answer_headers: isAccepted && text === null ? null : redactHeaders(headers, redact),
    mismatches: null,
    duration_ms: durationMs,
  }
}

/** Returns the result of a delivery that was not answered. */
export function unanswered(
  outcome: DeliveryResult['outcome'],
  reason: string,
  durationMs: number | null = null,
): DeliveryResult {
  return { outcome, reason, status: null, mismatches: null, duration_ms: durationMs, answer: null }
}

const MAX_HEADER_LENGTH = 200

/** In one text, because to prepare the search for a secret takes longer than to search. */
function redactHeaders(headers: Record<string, string> = {}, redact: Redact): Record<string, string> | null {
  const names = Object.keys(headers)
  const texts = redact([...names, ...Object.values(headers)].join('\n')).split('\n')
  // A text that repeats a secret in another spelling is replaced as a whole.
  if (names.length === 0 || texts.length !== 2 * names.length) return null
  const values = texts.slice(names.length)
  return Object.fromEntries(values.map((value, index) => [texts[index], value.slice(0, MAX_HEADER_LENGTH)]))
}

const REUSED_CONNECTION_ENDED =
  'The endpoint ended the connection of an earlier request before it answered this one: it may or may not have processed it.'

/** The message and the further fields of a `verification_failed` error (contract README, "Webhook sources"). */
export interface VerificationFailure extends Record<string, unknown> {
  message: string
  reason: VerificationReason
}

/** Returns why the endpoint did not confirm the verification request, or undefined if it did. */
export function toVerificationFailure(
  result: SentResult,
  redact: Redact,
  rejectedAnswer: string | null,
): VerificationFailure | undefined {
  if (result.kind === 'answered') {
    const { status, location } = result
    if (isSuccess(status)) return undefined
    const message = `${describeRejection(status, location, redact)} It must answer the verification request with a 2xx status.`
    const answer = rejectedAnswer === null ? {} : { rejected_answer: rejectedAnswer }
    if (!isRedirect(status, location)) return { message, reason: 'status', status, ...answer }
    return { message, reason: 'redirect', status, location: location === null ? null : redact(location), ...answer }
  }
  const detail = redact(result.detail)
  switch (result.kind) {
    case 'timed_out':
      return {
        message: `${toSentence(detail)} It must answer the verification request within 10 seconds.`,
        reason: 'timed_out',
      }
    case 'unreachable':
      return { message: `The endpoint cannot be reached: ${detail}.`, reason: 'unreachable' }
    case 'refused':
      return { message: `The endpoint must be publicly reachable: ${detail}.`, reason: 'url_not_public' }
    default:
      return result satisfies never
  }
}

function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299
}

function describeRejection(status: number, location: string | null, redact: Redact): string {
  if (!isRedirect(status, location)) return `The endpoint answered ${status}.`
  const target = location === null ? '' : ` and points to ${redact(location)}`
  return `The endpoint answered ${status}${target}; redirects are not followed: enter the final URL.`
}

function isRedirect(status: number, location: string | null): boolean {
  return location !== null || [301, 302, 303, 307, 308].includes(status)
}
