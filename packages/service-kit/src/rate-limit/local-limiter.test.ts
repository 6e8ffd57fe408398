import { describe, expect, test } from '@jest/globals'
import { createLocalLimiter } from './local-limiter.ts'

describe('createLocalLimiter', () => {
  test('allows the limit in each window, and reports what is left and until when', () => {
    let nowMs = 85_423.123
    const limiter = createLocalLimiter({ limit: 2, windowSeconds: 60 }, { now: () => nowMs })
    expect(limiter.consume('a')).toEqual({ isAllowed: true, remaining: 1, resetMs: 60_000 })
    nowMs += 20_000
    expect(limiter.consume('a')).toEqual({ isAllowed: true, remaining: 0, resetMs: 40_000 })
    expect(limiter.consume('a')).toEqual({ isAllowed: false, remaining: 0, resetMs: 40_000 })
    expect(limiter.consume('b').isAllowed).toBe(true)
    nowMs += 40_000
    expect(limiter.consume('a')).toEqual({ isAllowed: true, remaining: 1, resetMs: 60_000 })
  })

  test('takes a count back, and never more than there are', () => {
    const limiter = createLocalLimiter({ limit: 1, windowSeconds: 60 })
    expect(limiter.consume('a').isAllowed).toBe(true)
    limiter.giveBack('a')
    limiter.giveBack('a')
    limiter.giveBack('b')
    expect(['a', 'a', 'b', 'b'].map((name) => limiter.consume(name).isAllowed)).toEqual([true, false, true, false])
  })

  test('forgets the least recently used name beyond the maximum', () => {
    const limiter = createLocalLimiter({ limit: 1, windowSeconds: 60 }, { maxNames: 2 })
    const isAllowed = ['a', 'b', 'a', 'c', 'a', 'b'].map((name) => limiter.consume(name).isAllowed)
    expect(isAllowed).toEqual([true, true, false, true, false, true])
  })
})
