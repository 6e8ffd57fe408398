import { describe, expect, test } from '@jest/globals'
import { createLocalLimiter, networkOf, rateLimited } from './rate-limit.ts'

describe('createLocalLimiter', () => {
  test('allows the limit in each window, and reports what is left and until when', () => {
    let nowMs = 85_423.123
    const limiter = createLocalLimiter({ limit: 2, windowSeconds: 60 }, { now: () => nowMs })
    expect(limiter.consume('a')).toEqual({ isAllowed: true, remaining: 1, resetMs: 60_000, countedUntilMs: 145_423 })
    nowMs += 20_000
    expect(limiter.consume('a')).toEqual({ isAllowed: true, remaining: 0, resetMs: 40_000, countedUntilMs: 145_423 })
    expect(limiter.consume('a')).toEqual({ isAllowed: false, remaining: 0, resetMs: 40_000, countedUntilMs: 145_423 })
    expect(limiter.consume('b').isAllowed).toBe(true)
    nowMs += 40_000
    expect(limiter.consume('a')).toEqual({ isAllowed: true, remaining: 1, resetMs: 60_000, countedUntilMs: 205_423 })
  })

  test('takes a count back, and never more than there are', () => {
    const limiter = createLocalLimiter({ limit: 1, windowSeconds: 60 })
    const counted = limiter.consume('a')
    expect(counted.isAllowed).toBe(true)
    limiter.giveBack('a', counted)
    limiter.giveBack('a', counted)
    limiter.giveBack('b', counted)
    expect(['a', 'a', 'b', 'b'].map((name) => limiter.consume(name).isAllowed)).toEqual([true, false, true, false])
  })

  test('takes nothing back from a later window, which did not count it', () => {
    let nowMs = 0
    const limiter = createLocalLimiter({ limit: 1, windowSeconds: 60 }, { now: () => nowMs })
    const counted = limiter.consume('a')
    nowMs += 60_000
    expect(limiter.consume('a').isAllowed).toBe(true)
    limiter.giveBack('a', counted)
    expect(limiter.consume('a').isAllowed).toBe(false)
  })

  test('forgets the least recently used name beyond the maximum', () => {
    const limiter = createLocalLimiter({ limit: 1, windowSeconds: 60 }, { maxNames: 2 })
    const isAllowed = ['a', 'b', 'a', 'c', 'a', 'b'].map((name) => limiter.consume(name).isAllowed)
    expect(isAllowed).toEqual([true, true, false, true, false, true])
  })
})

test.each([
  [0, '1', '1 second'],
  [1_001, '2', '2 seconds'],
  [90_000, '90', '90 seconds'],
  [90_001, '91', '2 minutes'],
  [3_600_000, '3600', '60 minutes'],
])('a refusal for %d ms gives programs %s s, and people %s', (resetMs, retryAfter, wait) => {
  const refusal = rateLimited('Too many.', { resetMs })
  expect(refusal.message).toBe(`Too many. Try again in ${wait}.`)
  expect(refusal.headers).toEqual({ 'Retry-After': retryAfter })
})

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3::4', networkOf('2001:db8:1:2::9')],
  ['192.0.2.1:50001', '192.0.2.1'],
  ['[2001:db8:1:2:3::4]:50001', networkOf('2001:db8:1:2::9')],
  ['', ''],
  // Node takes such a zone, the library does not.
  ['fe80::1%a-b', 'fe80::1%a-b'],
])('%p is of the network %p', (address, network) => {
  expect(networkOf(address)).toBe(network)
})
