import { describe, expect, test } from '@jest/globals'
import { backoff } from './backoff.ts'

describe('backoff', () => {
  test('doubles the delay up to the longest', () => {
    const nextDelayMs = backoff({ firstMs: 100, maxMs: 500 })
    expect([1, 2, 3, 4, 5].map(nextDelayMs)).toEqual([100, 200, 400, 500, 500])
  })

  test('with jitter, takes off at most half of the delay', () => {
    expect(backoff({ firstMs: 100, maxMs: 500, hasJitter: true, random: () => 0 })()).toBe(100)
    expect(backoff({ firstMs: 100, maxMs: 500, hasJitter: true, random: () => 1 })()).toBe(50)
  })
})
