import { describe, expect, test } from '@jest/globals'
import { toConnectOutcome, toErrorOutcome } from './outbound-result.ts'

/** An error as Node creates it, with a secret in the message and in another property. */
function nodeError(code: string, syscall?: string): Error {
  return Object.assign(new Error('secret'), { code, rawPacket: Buffer.from('secret'), ...(syscall ? { syscall } : {}) })
}

const failed = (code: string, address = '192.0.2.1'): Error =>
  Object.assign(new Error(code), { code, syscall: 'connect', address })

describe('toConnectOutcome', () => {
  test.each(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL'])('%s is no outcome', (code) => {
    expect(toConnectOutcome(failed(code))).toMatchObject({ kind: 'unavailable', detail: expect.stringContaining(code) })
    const several = new AggregateError([failed('ECONNREFUSED'), failed(code), failed('ETIMEDOUT')])
    expect(toConnectOutcome(several)).toMatchObject({ kind: 'unavailable' })
  })

  test('a machine without IPv6 is not short of anything: the endpoint is unreachable', () => {
    expect(toConnectOutcome(failed('EADDRNOTAVAIL', '2001:db8::1'))).toMatchObject({
      cause: 'no_route',
    })
  })

  test.each(['ECONNREFUSED', 'ENETUNREACH', 'ETIMEDOUT'])('%s is an outcome', (code) => {
    expect(toConnectOutcome(failed(code)).kind).toMatch(/^(unreachable|timed_out)$/)
  })
})

describe('toErrorOutcome', () => {
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
  ])('turns %s (%s) into %s', (code, syscall, cause) => {
    const failure = toErrorOutcome(nodeError(code, syscall), 'answer')
    expect(failure).toMatchObject({ kind: 'unreachable', cause, tlsError: null })
    expect(JSON.stringify(failure)).not.toContain('secret')
  })

  test.each(['ETIMEDOUT', 'ERR_SOCKET_CONNECTION_TIMEOUT'])('turns %s into a time-out of the phase', (code) => {
    expect(toErrorOutcome(nodeError(code), 'connect')).toMatchObject({
      kind: 'timed_out',
      phase: 'connect',
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
  ])('turns %s in the handshake into the TLS error %s', (code, tlsError) => {
    expect(toErrorOutcome(nodeError(code), 'tls')).toMatchObject({ cause: 'tls', tlsError })
  })

  test('turns a TLS alert after the request into a TLS error of a request that was sent', () => {
    const failure = toErrorOutcome(nodeError('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'), 'answer')
    expect(failure).toMatchObject({ cause: 'tls' })
  })

  test('uses the last error of several addresses that is not a time-out', () => {
    const errors = [nodeError('ENETUNREACH'), nodeError('ECONNREFUSED'), nodeError('ETIMEDOUT')]
    expect(toErrorOutcome(new AggregateError(errors), 'connect')).toMatchObject({ cause: 'connection_refused' })
    const slow = new AggregateError([nodeError('ETIMEDOUT'), nodeError('ETIMEDOUT')])
    expect(toErrorOutcome(slow, 'connect')).toMatchObject({ kind: 'timed_out' })
  })

  test.each([undefined, null, 'text', 7, {}, new Error('no code')])('turns %p into another error', (error) => {
    expect(toErrorOutcome(error, 'answer')).toMatchObject({ kind: 'unreachable', cause: 'other' })
  })
})
