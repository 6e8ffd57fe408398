import type { UrlFaultCode } from './judge-url.ts'

/**
 * What became of one request. `detail` is one sentence part for people: it may be shown and logged, since it holds
 * nothing of the request's headers or body. `sent` says whether a byte of the request may have reached the endpoint.
 */
export type OutboundResult = OutboundOutcome & { durationMs: number }

export type OutboundOutcome =
  | {
      kind: 'answered'
      status: number
      /** Where a 3xx answer points, as it stands there. */
      location: string | null
      /** The one-line text of a 2xx answer (contract, section 4.5), if it has one. */
      text: string | null
    }
  | { kind: 'timed_out'; phase: OutboundPhase; sent: boolean; detail: string }
  | { kind: 'unreachable'; cause: UnreachableCause; tlsFault: TlsFault | null; sent: boolean; detail: string }
  | { kind: 'refused'; code: UrlFaultCode; address: string | null; detail: string }

export type OutboundPhase = 'dns' | 'connect' | 'tls' | 'answer'

/** `proxy`: the egress proxy itself failed. `beyond_proxy`: the proxy could not reach the endpoint. */
export type UnreachableCause =
  | 'name_not_found'
  | 'dns_failed'
  | 'connection_refused'
  | 'connection_reset'
  | 'connection_closed'
  | 'no_route'
  | 'tls'
  | 'invalid_answer'
  | 'proxy'
  | 'beyond_proxy'
  | 'other'

export type TlsFault =
  | 'expired'
  | 'not_yet_valid'
  | 'self_signed'
  | 'untrusted'
  | 'wrong_name'
  | 'revoked'
  | 'protocol'
  | 'not_tls'
  | 'other'

/** A request that got no answer, told from the error of the socket, of TLS or of the parser. */
export function toFailure(error: unknown, phase: OutboundPhase, sent: boolean): OutboundOutcome {
  const { code, syscall } = readError(error)
  if (code === 'ETIMEDOUT' || code === 'ERR_SOCKET_CONNECTION_TIMEOUT') {
    return { kind: 'timed_out', phase, sent, detail: timeoutDetails[phase] }
  }
  if (code.startsWith('HPE_')) {
    return unreachable('invalid_answer', sent, `the endpoint's answer is not valid HTTP (${code})`)
  }
  // The peer may also say that it wants no such handshake after the request has left (TLS 1.3).
  if (phase === 'tls' || code.startsWith('ERR_SSL_')) return toTlsFailure(code, sent)
  switch (code) {
    case 'ECONNREFUSED':
      return unreachable('connection_refused', sent, 'the endpoint refuses connections')
    case 'ECONNRESET':
      // Node uses this code also for a connection that was closed in order, but then no system call failed.
      return syscall === undefined ? closed(sent) : unreachable('connection_reset', sent, 'the connection was reset')
    case 'EPIPE':
    case 'ECONNABORTED':
      return unreachable('connection_reset', sent, 'the connection was reset')
    case 'ERR_SOCKET_CLOSED':
    case 'ERR_STREAM_PREMATURE_CLOSE':
      return closed(sent)
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'EADDRNOTAVAIL':
    case 'EHOSTDOWN':
    case 'ENETDOWN':
      return unreachable('no_route', sent, `no route leads to the endpoint (${code})`)
    default:
      return unreachable('other', sent, `the request failed (${code})`)
  }
}

/** The deadline passed during `phase`. */
export function toTimeout(phase: OutboundPhase, sent: boolean): OutboundOutcome {
  return { kind: 'timed_out', phase, sent, detail: timeoutDetails[phase] }
}

export function unreachable(cause: UnreachableCause, sent: boolean, detail: string): OutboundOutcome {
  return { kind: 'unreachable', cause, tlsFault: null, sent, detail }
}

function closed(sent: boolean): OutboundOutcome {
  return unreachable('connection_closed', sent, 'the endpoint closed the connection without an answer')
}

const timeoutDetails: Record<OutboundPhase, string> = {
  dns: 'the look-up of the name took too long',
  connect: 'the endpoint took too long to accept the connection',
  tls: 'the TLS handshake took too long',
  answer: 'the endpoint took too long to answer',
}

function toTlsFailure(code: string, sent: boolean): OutboundOutcome {
  const tlsFault = tlsFaults[code] ?? (/PROTOCOL|VERSION|CIPHER|HANDSHAKE_FAILURE/u.test(code) ? 'protocol' : 'other')
  return { kind: 'unreachable', cause: 'tls', tlsFault, sent, detail: `${tlsDetails[tlsFault]} (${code})` }
}

const tlsFaults: Record<string, TlsFault> = {
  CERT_HAS_EXPIRED: 'expired',
  CERT_NOT_YET_VALID: 'not_yet_valid',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'self_signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'self_signed',
  ERR_TLS_CERT_ALTNAME_INVALID: 'wrong_name',
  ERR_TLS_CERT_ALTNAME_FORMAT: 'wrong_name',
  HOSTNAME_MISMATCH: 'wrong_name',
  CERT_REVOKED: 'revoked',
  // What OpenSSL says when it reads a plain HTTP answer.
  ERR_SSL_WRONG_VERSION_NUMBER: 'not_tls',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'not_tls',
  UNABLE_TO_GET_ISSUER_CERT: 'untrusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'untrusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'untrusted',
  CERT_UNTRUSTED: 'untrusted',
  CERT_REJECTED: 'untrusted',
  INVALID_CA: 'untrusted',
  INVALID_PURPOSE: 'untrusted',
  CERT_SIGNATURE_FAILURE: 'untrusted',
  CERT_CHAIN_TOO_LONG: 'untrusted',
  PATH_LENGTH_EXCEEDED: 'untrusted',
}

const tlsDetails: Record<TlsFault, string> = {
  expired: 'the certificate has expired',
  not_yet_valid: 'the certificate is not valid yet',
  self_signed: 'the certificate is self-signed',
  untrusted: 'the certificate was not issued by a trusted authority, or an intermediate certificate is missing',
  wrong_name: 'the certificate is for another host name',
  revoked: 'the certificate has been revoked',
  protocol: 'no common TLS version or cipher: the endpoint must offer TLS 1.2 or newer',
  not_tls: 'the endpoint does not speak TLS on this port',
  other: 'the endpoint broke off the TLS handshake',
}

/** Only the codes are taken: messages and properties may hold bytes of the peer. */
function readError(error: unknown): { code: string; syscall: string | undefined } {
  const fields = typeof error === 'object' && error !== null ? (error as Record<string, unknown>) : {}
  const { code, syscall, errors } = fields
  if (Array.isArray(errors) && errors.length > 0) {
    // Several addresses were tried: what the last of them said, unless it was our own patience that ran out.
    const each = errors.map((inner: unknown) => readError(inner))
    return each.findLast((inner) => inner.code !== 'ETIMEDOUT') ?? { code: 'ETIMEDOUT', syscall: undefined }
  }
  return {
    code: typeof code === 'string' ? code : 'EUNKNOWN',
    syscall: typeof syscall === 'string' ? syscall : undefined,
  }
}
