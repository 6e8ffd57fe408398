import { describe, expect, test } from '@jest/globals'
import { toFailure } from './outbound-result.ts'

/** An error as Node makes it, with what must never leave in its other properties. */
function nodeError(code: string, syscall?: string): Error {
  return Object.assign(new Error('secret'), { code, rawPacket: Buffer.from('secret'), ...(syscall ? { syscall } : {}) })
}

describe('toFailure', () => {
  test.each([
    ['ECONNREFUSED', 'connect', 'connection_refused'],
    ['ECONNRESET', 'read', 'connection_reset'],
    ['ECONNRESET', undefined, 'connection_closed'],
    ['EPIPE', 'write', 'connection_reset'],
    ['ECONNABORTED', 'read', 'connection_reset'],
    ['ERR_SOCKET_CLOSED', undefined, 'connection_closed'],
    ['ERR_STREAM_PREMATURE_CLOSE', undefined, 'connection_closed'],
    ['EHOSTUNREACH', 'connect', 'no_route'],
    ['ENETUNREACH', 'connect', 'no_route'],
    ['EADDRNOTAVAIL', 'connect', 'no_route'],
    ['EHOSTDOWN', 'connect', 'no_route'],
    ['ENETDOWN', 'connect', 'no_route'],
    ['HPE_INVALID_CONSTANT', undefined, 'invalid_answer'],
    ['EMFILE', 'connect', 'other'],
  ])('tells %s (%s) as %s', (code, syscall, cause) => {
    const failure = toFailure(nodeError(code, syscall), 'answer', true)
    expect(failure).toMatchObject({ kind: 'unreachable', cause, tlsFault: null, sent: true })
    expect(JSON.stringify(failure)).not.toContain('secret')
  })

  test.each(['ETIMEDOUT', 'ERR_SOCKET_CONNECTION_TIMEOUT'])('tells %s as a time-out of the phase', (code) => {
    expect(toFailure(nodeError(code), 'connect', false)).toMatchObject({
      kind: 'timed_out',
      phase: 'connect',
      sent: false,
    })
  })

  test.each([
    ['CERT_HAS_EXPIRED', 'expired'],
    ['CERT_REVOKED', 'revoked'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'self_signed'],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'untrusted'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'not_tls'],
    ['ERR_SSL_PACKET_LENGTH_TOO_LONG', 'not_tls'],
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'protocol'],
    ['ERR_SSL_NO_CIPHERS_AVAILABLE', 'protocol'],
    ['ECONNRESET', 'other'],
  ])('tells %s in the handshake as the TLS fault %s', (code, tlsFault) => {
    expect(toFailure(nodeError(code), 'tls', false)).toMatchObject({ cause: 'tls', tlsFault, sent: false })
  })

  test('tells a TLS alert after the request as a TLS fault, with the request sent', () => {
    const failure = toFailure(nodeError('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'), 'answer', true)
    expect(failure).toMatchObject({ cause: 'tls', sent: true })
  })

  test('tells several addresses by the last that was not merely slow', () => {
    const errors = [nodeError('ENETUNREACH'), nodeError('ECONNREFUSED'), nodeError('ETIMEDOUT')]
    expect(toFailure(new AggregateError(errors), 'connect', false)).toMatchObject({ cause: 'connection_refused' })
    const slow = new AggregateError([nodeError('ETIMEDOUT'), nodeError('ETIMEDOUT')])
    expect(toFailure(slow, 'connect', false)).toMatchObject({ kind: 'timed_out' })
  })

  test.each([undefined, null, 'text', 7, {}, new Error('no code')])('tells %p as something else', (error) => {
    expect(toFailure(error, 'answer', true)).toMatchObject({ kind: 'unreachable', cause: 'other' })
  })
})
