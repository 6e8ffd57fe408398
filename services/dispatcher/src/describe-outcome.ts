import { type VerificationReason } from '@workflow-service/contract'
import type { DeliveryResult } from '@workflow-service/database'
import type { OutboundResult } from './outbound/outbound-result.ts'

/** Shorter ones would black out common words: nobody's secret is worth that, and the contract recommends 32 bytes. */
const SHORTEST_HIDDEN_SECRET = 6
const HIDDEN = '[hidden]'

/** The text without the secrets: an endpoint may send back what it was sent. */
export type Hide = (text: string) => string

/** Takes the given secrets out of whatever an endpoint says, also where it percent-encodes them. */
export function createHide(secrets: readonly (string | null)[]): Hide {
  const hidden = secrets
    .filter((secret) => secret !== null)
    .filter((secret) => secret.length >= SHORTEST_HIDDEN_SECRET)
    .flatMap((secret) => [secret, toPercentEncoded(secret)])
  return (text) => hidden.reduce((rest, secret) => rest.replaceAll(secret, HIDDEN), text)
}

/** The entry of the log for what came of a request (contract 4.5: any 2xx is accepted, any other status rejected). */
export function toDeliveryResult(result: OutboundResult, hide: Hide): DeliveryResult {
  const { durationMs } = result
  const failed = { status: null, answer: null, mismatches: null, durationMs }
  switch (result.kind) {
    case 'answered': {
      const isAccepted = result.status >= 200 && result.status <= 299
      return {
        outcome: isAccepted ? 'accepted' : 'rejected',
        status: result.status,
        reason: isAccepted ? null : describeRejection(result.status, result.location, hide),
        answer: result.text === null ? null : hide(result.text),
        mismatches: null,
        durationMs,
      }
    }
    case 'timed_out':
      return { ...failed, outcome: 'timed_out', reason: toSentence(hide(result.detail)) }
    case 'unreachable':
      return { ...failed, outcome: 'unreachable', reason: toSentence(hide(result.detail)) }
    case 'refused':
      return { ...failed, outcome: 'refused', reason: toSentence(hide(result.detail)) }
    default:
      return result satisfies never
  }
}

/** The further members of a `verification_failed` (design 7), and its words for whoever entered the URL. */
export interface VerificationFault {
  message: string
  extra: { reason: VerificationReason } & Record<string, unknown>
}

/** Why the endpoint did not confirm; undefined when it did. */
export function toVerificationFault(result: OutboundResult, hide: Hide): VerificationFault | undefined {
  switch (result.kind) {
    case 'answered': {
      const { status, location } = result
      if (status >= 200 && status <= 299) return undefined
      const message = `${describeRejection(status, location, hide)} It must answer the verification request with a 2xx status.`
      if (!isRedirect(status, location)) return { message, extra: { reason: 'status', status } }
      return { message, extra: { reason: 'redirect', status, location: location === null ? null : hide(location) } }
    }
    case 'timed_out':
      return {
        message: `${toSentence(hide(result.detail))} It must answer the verification request within 10 seconds.`,
        extra: { reason: 'timed_out', kind: result.phase },
      }
    case 'unreachable':
      return {
        message: `The endpoint cannot be reached: ${hide(result.detail)}.`,
        extra: {
          reason: 'unreachable',
          kind: result.cause,
          ...(result.tlsError === null ? {} : { tls_fault: result.tlsError }),
        },
      }
    case 'refused':
      return {
        message: `The endpoint must be publicly reachable: ${hide(result.detail)}.`,
        extra: { reason: 'url_not_public', address: result.address },
      }
    default:
      return result satisfies never
  }
}

function describeRejection(status: number, location: string | null, hide: Hide): string {
  if (!isRedirect(status, location)) return `The endpoint answered ${status}.`
  const target = location === null ? '' : ` and points to ${hide(location)}`
  return `The endpoint answered ${status}${target}; redirects are not followed: enter the final URL.`
}

function isRedirect(status: number, location: string | null): boolean {
  return location !== null || [301, 302, 303, 307, 308].includes(status)
}

function toSentence(detail: string): string {
  return `${detail.slice(0, 1).toUpperCase()}${detail.slice(1).replace(/\.$/, '')}.`
}

/** Percent encoding cannot take a lone surrogate; no stored secret holds one. */
function toPercentEncoded(secret: string): string {
  return encodeURIComponent(secret)
}
