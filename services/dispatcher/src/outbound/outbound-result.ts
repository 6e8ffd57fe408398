import type { IncomingHttpHeaders } from 'node:http'
import { isIPv4 } from 'node:net'

/**
 * The result of one request. `detail` is a sentence part that may be shown and logged: it contains nothing of the
 * request's headers or body. `internalDetail` is for the service's own log only: it may contain what an internal name
 * resolves to, which would let a customer explore the network of the service.
 */
export type OutboundResult = OutboundOutcome & { durationMs: number }

/** Without `unavailable`, which is not an outcome of a delivery. */
export type SentResult = Exclude<OutboundResult, UnavailableOutcome>

export type OutboundOutcome =
  | {
      kind: 'answered'
      status: number
      /** The `Location` of a 3xx answer, unchanged. */
      location: string | null
      /** The one-line text of a 2xx answer, if it has one (contract README, "Payload request"). */
      text: string | null
      /** The beginning of the body of an answer that is not 2xx, for people; absent if there is none. */
      rejection?: string | undefined
      /** What people may see of the headers. */
      headers?: Record<string, string>
      /** Present if the request asks for it. */
      body?: AnsweredBody
    }
  | { kind: 'timed_out'; phase: OutboundPhase; detail: string }
  | {
      kind: 'unreachable'
      cause: UnreachableCause
      detail: string
      internalDetail?: string
      /** Set if the peer ended a reused connection: the end may have been on its way already, so nothing is known. */
      isReused?: true
    }
  | { kind: 'refused'; detail: string; internalDetail?: string }
  /**
   * The service itself lacked something, such as file descriptors, before a byte was sent: the request can be repeated.
   */
  | UnavailableOutcome

/** The outcome of a request that was not answered. */
export type UnansweredOutcome = Exclude<OutboundOutcome, { kind: 'answered' }>

/** The body of an answer, as far as it was read. */
export interface AnsweredBody {
  bytes: Buffer
  /** Whether more followed, or the connection broke. */
  isCutOff: boolean
  headers: IncomingHttpHeaders
}

interface UnavailableOutcome {
  kind: 'unavailable'
  detail: string
  internalDetail?: string
}

export type OutboundPhase = 'dns' | 'connect' | 'tls' | 'answer'

/** `beyond_proxy`: the egress proxy could not reach the endpoint. */
export type UnreachableCause =
  | 'name_not_found'
  | 'dns_failed'
  | 'connection_refused'
  | 'connection_reset'
  | 'connection_closed'
  | 'no_route'
  | 'tls'
  | 'invalid_answer'
  | 'beyond_proxy'
  | 'other'

/** Returns a detail as a sentence. */
export function toSentence(detail: string): string {
  return `${detail.slice(0, 1).toUpperCase()}${detail.slice(1).replace(/\.$/, '')}.`
}

/** Returns the outcome of a request that failed with an error of the socket, of TLS or of the HTTP parser. */
export function toErrorOutcome(error: unknown, phase: OutboundPhase): UnansweredOutcome {
  const { code, syscall } = readError(error)
  if (code === 'ETIMEDOUT' || code === 'ERR_SOCKET_CONNECTION_TIMEOUT') return toTimeoutOutcome(phase)
  if (code.startsWith('HPE_')) {
    return unreachableOutcome('invalid_answer', `the endpoint's answer is not valid HTTP (${code})`)
  }
  // In TLS 1.3 the peer may reject the handshake after the request was sent.
  if (phase === 'tls' || code.startsWith('ERR_SSL_')) {
    const [, detail] = TLS_ERRORS.find(([codes]) => codes.includes(code)) ?? [code, otherTlsDetail(code)]
    return unreachableOutcome('tls', `${detail} (${code})`)
  }
  // Node also uses this code for a connection that the peer closed properly, but then no system call failed.
  const found = code === 'ECONNRESET' && syscall === undefined ? 'ERR_SOCKET_CLOSED' : code
  const [, cause, detail] = ERRORS.find(([codes]) => codes.includes(found)) ?? [
    code,
    'other',
    'the request failed (CODE)',
  ]
  return unreachableOutcome(cause, detail.replace('CODE', code))
}

const ERRORS: readonly (readonly [codes: readonly string[], cause: UnreachableCause, detail: string])[] = [
  [['ECONNREFUSED'], 'connection_refused', 'the endpoint refuses connections'],
  [['ECONNRESET', 'ECONNABORTED', 'EPIPE'], 'connection_reset', 'the connection was reset'],
  [
    ['ERR_SOCKET_CLOSED', 'ERR_STREAM_PREMATURE_CLOSE'],
    'connection_closed',
    'the endpoint closed the connection without an answer',
  ],
  [
    ['EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL', 'EHOSTDOWN', 'ENETDOWN'],
    'no_route',
    'there is no route to the endpoint (CODE)',
  ],
]

const TLS_ERRORS: readonly (readonly [codes: readonly string[], detail: string])[] = [
  [['CERT_HAS_EXPIRED'], 'the certificate has expired'],
  [['CERT_NOT_YET_VALID'], 'the certificate is not valid yet'],
  [['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN'], 'the certificate is self-signed'],
  [
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'ERR_TLS_CERT_ALTNAME_FORMAT', 'HOSTNAME_MISMATCH'],
    'the certificate is for another host name',
  ],
  [['CERT_REVOKED'], 'the certificate has been revoked'],
  [
    [
      'UNABLE_TO_GET_ISSUER_CERT',
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      'CERT_UNTRUSTED',
      'CERT_REJECTED',
      'INVALID_CA',
      'INVALID_PURPOSE',
      'CERT_SIGNATURE_FAILURE',
      'CERT_CHAIN_TOO_LONG',
      'PATH_LENGTH_EXCEEDED',
    ],
    'the certificate was not issued by a trusted authority, or an intermediate certificate is missing',
  ],
  [['ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL'], 'the endpoint does not offer HTTP/1.1'],
  // OpenSSL reports these two when it reads a plain HTTP answer.
  [['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG'], 'the endpoint does not speak TLS on this port'],
]

function otherTlsDetail(code: string): string {
  return /PROTOCOL|VERSION|CIPHER|HANDSHAKE_FAILURE/.test(code)
    ? 'no common TLS version or cipher: the endpoint must offer TLS 1.2 or newer'
    : 'the TLS handshake failed'
}

/**
 * Returns the outcome of a connection that could not be opened. A shortage of this machine counts even if another
 * address failed by itself: not every address was tried then.
 */
export function toConnectOutcome(error: unknown): UnansweredOutcome {
  const shortage = findShortage(error)
  return shortage === undefined
    ? toErrorOutcome(error, 'connect')
    : { kind: 'unavailable', detail: `the service cannot open a connection at the moment (${shortage})` }
}

const SHORTAGE_CODES = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EAGAIN'])

/** Returns the code of the shortage: no file descriptor, no memory, or no free local port. */
export function findShortage(error: unknown): string | undefined {
  const { code, address, errors } = toFields(error)
  if (Array.isArray(errors) && errors.length > 0) {
    return errors.map((inner: unknown) => findShortage(inner)).find((found) => found !== undefined)
  }
  if (typeof code !== 'string') return undefined
  // For IPv6 it also means that this machine has no IPv6 address, which waiting does not change.
  const hasNoPort = code === 'EADDRNOTAVAIL' && typeof address === 'string' && isIPv4(address)
  return hasNoPort || SHORTAGE_CODES.has(code) ? code : undefined
}

/** Returns the outcome of a request whose deadline passed during `phase`. */
export function toTimeoutOutcome(phase: OutboundPhase): UnansweredOutcome {
  return { kind: 'timed_out', phase, detail: TIMEOUT_DETAILS[phase] }
}

export function unreachableOutcome(cause: UnreachableCause, detail: string): OutboundOutcome & { kind: 'unreachable' } {
  return { kind: 'unreachable', cause, detail }
}

/** Returns the outcome of a request on a connection that earlier requests used. */
export function toReusedOutcome(outcome: OutboundOutcome): OutboundOutcome {
  const isEnd =
    outcome.kind === 'unreachable' && (outcome.cause === 'connection_reset' || outcome.cause === 'connection_closed')
  return isEnd ? { ...outcome, isReused: true } : outcome
}

const TIMEOUT_DETAILS: Record<OutboundPhase, string> = {
  dns: 'the look-up of the name took too long',
  connect: 'the endpoint took too long to accept the connection',
  tls: 'the TLS handshake took too long',
  answer: 'the endpoint took too long to answer',
}

/** Reads only the codes: messages and other properties may contain bytes from the peer. */
function readError(error: unknown): { code: string; syscall: string | undefined } {
  const { code, syscall, errors } = toFields(error)
  if (Array.isArray(errors) && errors.length > 0) {
    // Several addresses were tried: the last error counts, but any other before a time-out.
    const tried = errors.map((inner: unknown) => readError(inner))
    return tried.findLast((inner) => inner.code !== 'ETIMEDOUT') ?? { code: 'ETIMEDOUT', syscall: undefined }
  }
  return {
    code: typeof code === 'string' ? code : 'EUNKNOWN',
    syscall: typeof syscall === 'string' ? syscall : undefined,
  }
}

function toFields(error: unknown): Record<string, unknown> {
  return typeof error === 'object' && error !== null ? (error as Record<string, unknown>) : {}
}
