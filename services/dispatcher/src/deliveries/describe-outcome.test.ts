import { describe, expect, test } from '@jest/globals'
import type { SentResult } from '../outbound/outbound-result.ts'
import { toDeliveryResult, toVerificationFailure } from './describe-outcome.ts'
import { createRedactor } from './redact.ts'

const redact = createRedactor([null])
const answered = (status: number, location: string | null = null, text: string | null = null): SentResult => ({
  kind: 'answered',
  status,
  location,
  text,
  durationMs: 12,
})

describe('toDeliveryResult', () => {
  test.each([
    [200, 'accepted'],
    [299, 'accepted'],
    [199, 'rejected'],
    [300, 'rejected'],
    [999, 'rejected'],
  ])('status %i is %s', (status, outcome) => {
    expect(toDeliveryResult(answered(status), redact)).toMatchObject({ outcome, status, durationMs: 12 })
  })

  test('has a reason that is a sentence, unless it was accepted', () => {
    expect(toDeliveryResult(answered(200, null, 'ok'), redact)).toMatchObject({ reason: null, answer: 'ok' })
    expect(toDeliveryResult(answered(503), redact).reason).toBe('The endpoint answered 503.')
    expect(toDeliveryResult(answered(301, 'https://b.example/'), redact).reason).toBe(
      'The endpoint answered 301 and points to https://b.example/; redirects are not followed: enter the final URL.',
    )
    const timedOut: SentResult = { kind: 'timed_out', phase: 'tls', detail: 'it took long', durationMs: 1 }
    expect(toDeliveryResult(timedOut, redact).reason).toBe('It took long.')
  })
})

describe('toVerificationFailure', () => {
  test('returns undefined for any 2xx', () => {
    for (const status of [200, 299]) expect(toVerificationFailure(answered(status), redact)).toBeUndefined()
  })

  test.each([
    ['304, which is no redirect', answered(304), { reason: 'status', status: 304 }],
    ['a redirect without a target', answered(307), { reason: 'redirect', status: 307, location: null }],
    [
      'a time-out',
      { kind: 'timed_out', phase: 'answer', detail: 'd', durationMs: 1 } as const,
      { reason: 'timed_out', kind: 'answer' },
    ],
    [
      'a private address',
      { kind: 'refused', address: '10.0.0.1', detail: 'd', durationMs: 1 } as const,
      { reason: 'url_not_public', address: '10.0.0.1' },
    ],
  ])('describes %s', (_what, result, extra) => {
    expect(toVerificationFailure(result, redact)).toEqual({ message: expect.stringMatching(/^[A-Z].*\.$/), extra })
  })
})
