import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { createLocalLimiter, type Limiter } from './create-limiter.ts'

const isAllowed = (limiter: Limiter, name: string): Promise<boolean> =>
  limiter.consume(name).then(
    () => true,
    () => false,
  )

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

describe('createLocalLimiter', () => {
  test('accepts the limit in each window, and reports what is left and until when', async () => {
    const limiter = createLocalLimiter({ limit: 2, windowSeconds: 60 })
    expect(await limiter.consume('a')).toMatchObject({ remainingPoints: 1, msBeforeNext: 60_000 })
    jest.advanceTimersByTime(20_000)
    expect(await limiter.consume('a')).toMatchObject({ remainingPoints: 0, msBeforeNext: 40_000 })
    await expect(limiter.consume('a')).rejects.toMatchObject({ remainingPoints: 0, msBeforeNext: 40_000 })
    expect(await isAllowed(limiter, 'b')).toBe(true)
    jest.advanceTimersByTime(40_000)
    expect(await limiter.consume('a')).toMatchObject({ remainingPoints: 1, msBeforeNext: 60_000 })
  })

  test('forgets the least recently used name beyond the maximum', async () => {
    const limiter = createLocalLimiter({ limit: 1, windowSeconds: 60 }, 2)
    for (const name of ['a', 'b']) expect(await isAllowed(limiter, name)).toBe(true)
    expect(await isAllowed(limiter, 'a')).toBe(false)
    expect(await isAllowed(limiter, 'c')).toBe(true)
    expect(await isAllowed(limiter, 'a')).toBe(false)
    expect(await isAllowed(limiter, 'b')).toBe(true)
  })
})
