import { describe, expect, test } from '@jest/globals'
import { createLocalLimiter } from './local-limiter.ts'

describe('createLocalLimiter', () => {
  test('allows the limit in each window, and reports what is left and until when', () => {
    let nowMs = 5_000
    const { consume } = createLocalLimiter({ limit: 2, windowSeconds: 60 }, { now: () => nowMs })
    expect(consume('a')).toEqual({ isAllowed: true, remaining: 1, resetMs: 60_000 })
    nowMs += 20_000
    expect(consume('a')).toEqual({ isAllowed: true, remaining: 0, resetMs: 40_000 })
    expect(consume('a')).toEqual({ isAllowed: false, remaining: 0, resetMs: 40_000 })
    expect(consume('b').isAllowed).toBe(true)
    nowMs += 40_000
    expect(consume('a')).toEqual({ isAllowed: true, remaining: 1, resetMs: 60_000 })
  })

  test('forgets the least recently used name beyond the maximum', () => {
    const { consume } = createLocalLimiter({ limit: 1, windowSeconds: 60 }, { maxNames: 2 })
    const isAllowed = ['a', 'b', 'a', 'c', 'a', 'b'].map((name) => consume(name).isAllowed)
    expect(isAllowed).toEqual([true, true, false, true, false, true])
  })
})
