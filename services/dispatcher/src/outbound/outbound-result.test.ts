import { describe, expect, test } from '@jest/globals'
import { toConnectOutcome, toErrorOutcome } from './outbound-result.ts'

/** An error as Node creates it, with a secret in the message and in another property. */
const failed = (code: string, address = '192.0.2.1'): Error =>
  Object.assign(new Error('secret'), { code, syscall: 'connect', address, rawPacket: Buffer.from('secret') })

describe('toConnectOutcome', () => {
  test.each(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL'])('%s is no outcome', (code) => {
    expect(toConnectOutcome(failed(code))).toMatchObject({ kind: 'unavailable', detail: expect.stringContaining(code) })
    const several = new AggregateError([failed('ECONNREFUSED'), failed(code), failed('ETIMEDOUT')])
    expect(toConnectOutcome(several)).toMatchObject({ kind: 'unavailable' })
  })

  test('a machine without IPv6 is not short of anything: the endpoint is unreachable', () => {
    expect(toConnectOutcome(failed('EADDRNOTAVAIL', '2001:db8::1'))).toMatchObject({ cause: 'no_route' })
  })

  test.each([
    ['that is not a time-out', ['ENETUNREACH', 'ECONNREFUSED', 'ETIMEDOUT'], { cause: 'connection_refused' }],
    ['which is a time-out if all are', ['ETIMEDOUT', 'ETIMEDOUT'], { kind: 'timed_out', phase: 'connect' }],
  ])('of several addresses the last error counts %s', (_which, codes, outcome) => {
    const found = toConnectOutcome(new AggregateError(codes.map((code) => failed(code))))
    expect(found).toMatchObject(outcome)
    expect(JSON.stringify(found)).not.toContain('secret')
  })
})

test.each([
  ['CERT_REVOKED', 'tls', 'the certificate has been revoked'],
  ['ECONNRESET', 'tls', 'the TLS handshake failed'],
  // TLS 1.3 may refuse the client after the request was sent.
  ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'answer', 'the TLS handshake failed'],
] as const)('%s in the phase %s is described as: %s', (code, phase, detail) => {
  expect(toErrorOutcome(failed(code), phase)).toMatchObject({ cause: 'tls', detail: `${detail} (${code})` })
})

test.each([undefined, 'text', {}, new Error('no code')])('%p is another error', (error) => {
  expect(toErrorOutcome(error, 'answer')).toMatchObject({ kind: 'unreachable', cause: 'other' })
})
