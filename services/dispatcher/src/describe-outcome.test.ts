import { describe, expect, test } from '@jest/globals'
import { createHide, toDeliveryResult, toVerificationFault } from './describe-outcome.ts'
import type { OutboundResult } from './outbound/outbound-result.ts'

const hide = createHide([null])
const answered = (status: number, location: string | null = null, text: string | null = null): OutboundResult => ({
  kind: 'answered',
  status,
  location,
  text,
  durationMs: 12,
})

describe('the outcome of a request', () => {
  test.each([
    [200, 'accepted'],
    [204, 'accepted'],
    [299, 'accepted'],
    [199, 'rejected'],
    [300, 'rejected'],
    [304, 'rejected'],
    [404, 'rejected'],
    [500, 'rejected'],
    [999, 'rejected'],
  ])('status %i is %s', (status, outcome) => {
    expect(toDeliveryResult(answered(status), hide)).toMatchObject({ outcome, status, durationMs: 12 })
  })

  test('says why in a sentence, and not when it was accepted', () => {
    expect(toDeliveryResult(answered(200, null, 'ok'), hide)).toMatchObject({ reason: null, answer: 'ok' })
    expect(toDeliveryResult(answered(503), hide).reason).toBe('The endpoint answered 503.')
    expect(toDeliveryResult(answered(301, 'https://b.example/'), hide).reason).toBe(
      'The endpoint answered 301 and points to https://b.example/; redirects are not followed: enter the final URL.',
    )
    const timedOut: OutboundResult = {
      kind: 'timed_out',
      phase: 'tls',
      wasSent: false,
      detail: 'it took long',
      durationMs: 1,
    }
    expect(toDeliveryResult(timedOut, hide).reason).toBe('It took long.')
  })
})

describe('a verification', () => {
  test('is confirmed by any 2xx', () => {
    for (const status of [200, 201, 204, 299]) expect(toVerificationFault(answered(status), hide)).toBeUndefined()
  })

  test.each([
    ['a status', answered(500), { reason: 'status', status: 500 }],
    ['304, which points nowhere', answered(304), { reason: 'status', status: 304 }],
    ['a redirect', answered(302, '/x'), { reason: 'redirect', status: 302, location: '/x' }],
    ['a redirect without a target', answered(307), { reason: 'redirect', status: 307, location: null }],
    [
      'a time-out',
      { kind: 'timed_out', phase: 'answer', wasSent: true, detail: 'd', durationMs: 1 } as const,
      { reason: 'timed_out', kind: 'answer' },
    ],
    [
      'a name without addresses',
      {
        kind: 'unreachable',
        cause: 'name_not_found',
        tlsError: null,
        wasSent: false,
        detail: 'd',
        durationMs: 1,
      } as const,
      { reason: 'unreachable', kind: 'name_not_found' },
    ],
    [
      'a bad certificate',
      { kind: 'unreachable', cause: 'tls', tlsError: 'expired', wasSent: false, detail: 'd', durationMs: 1 } as const,
      { reason: 'unreachable', kind: 'tls', tls_fault: 'expired' },
    ],
    [
      'a private address',
      { kind: 'refused', code: 'url_not_public', address: '10.0.0.1', detail: 'd', durationMs: 1 } as const,
      { reason: 'url_not_public', address: '10.0.0.1' },
    ],
  ])('fails for %s, and the application learns what happened', (_what, result, extra) => {
    expect(toVerificationFault(result, hide)).toEqual({ message: expect.stringMatching(/^[A-Z].*\.$/), extra })
  })
})

describe('what is hidden', () => {
  test('is every secret, as it is and percent-encoded', () => {
    const cover = createHide(['s3cret/äöü +', null, 'token.1'])
    expect(cover(`a s3cret/äöü + b ${encodeURIComponent('s3cret/äöü +')} token.1 token.1`)).toBe(
      'a [hidden] b [hidden] [hidden] [hidden]',
    )
  })

  test('is no secret so short that common words would go with it', () => {
    expect(createHide(['order'])('the order was booked')).toBe('the order was booked')
  })
})
