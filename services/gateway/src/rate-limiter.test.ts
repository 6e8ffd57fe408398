import { describe, expect, test } from '@jest/globals'
import { createLocalRateLimiter, type RateVerdict } from './rate-limiter.ts'

/** A limiter with a clock that only the test moves. */
function limiterAt(limit: number, windowSeconds = 60) {
  let nowMs = 1_000_000
  const limiter = createLocalRateLimiter({ limit, windowSeconds }, () => nowMs)
  return {
    take: (name = 'a') => limiter.take(name) as RateVerdict,
    wait: (seconds: number) => {
      nowMs += seconds * 1_000
    },
  }
}

describe('createLocalRateLimiter', () => {
  test.each([1, 2, 7, 60, 600, 999, 100_000])('lets a burst of exactly %d through, and no more', (limit) => {
    const { take } = limiterAt(limit)
    const verdicts = Array.from({ length: limit }, () => take())
    expect(verdicts.filter(({ isAllowed }) => !isAllowed)).toEqual([])
    expect(verdicts.findIndex(({ remaining }, taken) => remaining !== limit - taken - 1)).toBe(-1)
    expect(take()).toMatchObject({ isAllowed: false, remaining: 0 })
  })

  test('fills evenly: after a while there are as many tokens as the while is worth', () => {
    const { take, wait } = limiterAt(60)
    for (let taken = 0; taken < 60; taken += 1) take()
    wait(3)
    expect([take(), take(), take(), take()].map(({ isAllowed }) => isAllowed)).toEqual([true, true, true, false])
  })

  test('holds no more than it holds when full', () => {
    const { take, wait } = limiterAt(5)
    wait(3_600)
    expect(Array.from({ length: 6 }, () => take().isAllowed)).toEqual([true, true, true, true, true, false])
  })

  test('a refusal costs nothing: who keeps asking is let through as soon as who waits', () => {
    const { take, wait } = limiterAt(60)
    for (let taken = 0; taken < 60; taken += 1) take()
    for (let asked = 0; asked < 100; asked += 1) {
      expect(take().isAllowed).toBe(false)
      wait(0.009)
    }
    wait(0.1)
    expect(take().isAllowed).toBe(true)
  })

  test('tells in how many seconds there is a token, and when the bucket is full', () => {
    const { take, wait } = limiterAt(6)
    expect(take()).toEqual({ isAllowed: true, remaining: 5, resetSeconds: 10, retrySeconds: 0 })
    for (let taken = 0; taken < 5; taken += 1) take()
    const refused = take()
    expect(refused).toEqual({ isAllowed: false, remaining: 0, resetSeconds: 60, retrySeconds: 10 })
    wait(refused.retrySeconds)
    expect(take()).toMatchObject({ isAllowed: true, remaining: 0 })
  })

  test('has a bucket for each name', () => {
    const { take } = limiterAt(1)
    expect([take('a'), take('b'), take('a')].map(({ isAllowed }) => isAllowed)).toEqual([true, true, false])
  })
})
