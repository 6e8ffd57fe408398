import type { VerificationReason } from '@workflow-service/contract'
import type { DeliveryResult } from '@workflow-service/database'
import { type SentResult, toSentence } from '../outbound/outbound-result.ts'
import type { Redact } from './redact.ts'

/** Returns the log entry for the result of a request: any 2xx is accepted (contract README, "Payload request"). */
export function toDeliveryResult(result: SentResult, redact: Redact): DeliveryResult {
  const { durationMs } = result
  const failed = { status: null, answer: null, rejectedAnswer: null, mismatches: null, durationMs }
  switch (result.kind) {
    case 'answered': {
      const isAccepted = result.status >= 200 && result.status <= 299
      return {
        outcome: isAccepted ? 'accepted' : 'rejected',
        status: result.status,
        reason: isAccepted ? null : describeRejection(result.status, result.location, redact),
        answer: result.text === null ? null : redact(result.text),
        rejectedAnswer: result.rejection === undefined ? null : redact(result.rejection),
        // An accepted request without a text, as most are, need not wait for the search for secrets.
        answerHeaders: isAccepted && result.text === null ? null : redactHeaders(result.headers, redact),
        mismatches: null,
        durationMs,
      }
    }
    case 'timed_out':
      return { ...failed, outcome: 'timed_out', reason: toSentence(redact(result.detail)) }
    case 'unreachable':
      if (result.isReused) return { ...failed, outcome: 'unknown', reason: REUSED_CONNECTION_ENDED }
      return { ...failed, outcome: 'unreachable', reason: toSentence(redact(result.detail)) }
    case 'refused':
      return { ...failed, outcome: 'refused', reason: toSentence(redact(result.detail)) }
    default:
      return result satisfies never
  }
}

const MAX_HEADER_LENGTH = 200

/** In one text, because to prepare the search for a secret takes longer than to search. */
function redactHeaders(headers: Record<string, string> = {}, redact: Redact): Record<string, string> | null {
  const names = Object.keys(headers)
  const values = redact(Object.values(headers).join('\n')).split('\n')
  // A text that repeats a secret in another spelling is replaced as a whole.
  if (names.length === 0 || values.length !== names.length) return null
  return Object.fromEntries(names.map((name, index) => [name, values[index]!.slice(0, MAX_HEADER_LENGTH)]))
}

const REUSED_CONNECTION_ENDED =
  'The endpoint ended the connection of an earlier request before it answered this one: it may or may not have processed it.'

/** The message and the further fields of a `verification_failed` error (contract README, "Webhook sources"). */
export interface VerificationFailure {
  message: string
  extra: { reason: VerificationReason } & Record<string, unknown>
}

/** Returns why the endpoint did not confirm the verification request, or undefined if it did. */
export function toVerificationFailure(
  result: SentResult,
  redact: Redact,
  rejectedAnswer: string | null = null,
): VerificationFailure | undefined {
  switch (result.kind) {
    case 'answered': {
      const { status, location } = result
      if (status >= 200 && status <= 299) return undefined
      const message = `${describeRejection(status, location, redact)} It must answer the verification request with a 2xx status.`
      const answer = rejectedAnswer === null ? {} : { rejected_answer: rejectedAnswer }
      if (!isRedirect(status, location)) return { message, extra: { reason: 'status', status, ...answer } }
      const target = location === null ? null : redact(location)
      return { message, extra: { reason: 'redirect', status, location: target, ...answer } }
    }
    case 'timed_out':
      return {
        message: `${toSentence(redact(result.detail))} It must answer the verification request within 10 seconds.`,
        extra: { reason: 'timed_out' },
      }
    case 'unreachable':
      return {
        message: `The endpoint cannot be reached: ${redact(result.detail)}.`,
        extra: { reason: 'unreachable' },
      }
    case 'refused':
      return {
        message: `The endpoint must be publicly reachable: ${redact(result.detail)}.`,
        extra: { reason: 'url_not_public' },
      }
    default:
      return result satisfies never
  }
}

function describeRejection(status: number, location: string | null, redact: Redact): string {
  if (!isRedirect(status, location)) return `The endpoint answered ${status}.`
  const target = location === null ? '' : ` and points to ${redact(location)}`
  return `The endpoint answered ${status}${target}; redirects are not followed: enter the final URL.`
}

function isRedirect(status: number, location: string | null): boolean {
  return location !== null || [301, 302, 303, 307, 308].includes(status)
}
