import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { withTimeout } from './with-timeout.ts'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

describe('withTimeout', () => {
  test('passes the result or the error on, and leaves no timer behind', async () => {
    expect(await withTimeout(Promise.resolve(1), 1_000)).toBe(1)
    await expect(withTimeout(Promise.reject(new Error('refused')), 1_000)).rejects.toThrow('refused')
    expect(jest.getTimerCount()).toBe(0)
  })

  test('rejects after the time, and ignores a later rejection of the work', async () => {
    const work = Promise.withResolvers<void>()
    const outcome = withTimeout(work.promise, 1_000, () => new Error('too slow'))
    jest.advanceTimersByTime(1_000)
    await expect(outcome).rejects.toThrow('too slow')
    work.reject(new Error('an unhandled rejection would fail this test'))
    await jest.advanceTimersByTimeAsync(0)
  })
})
