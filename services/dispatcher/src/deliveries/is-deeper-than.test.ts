import { describe, expect, test } from '@jest/globals'
import { isDeeperThan } from './is-deeper-than.ts'

const nested = (levels: number): unknown => JSON.parse(`${'[{"a":'.repeat(levels / 2)}1${'}]'.repeat(levels / 2)}`)

describe('isDeeperThan', () => {
  test.each([
    ['a text', 'x', 0, false],
    ['null', null, 0, false],
    ['an empty object', {}, 0, true],
    ['an empty object', {}, 1, false],
    ['32 levels', nested(32), 32, false],
    ['34 levels', nested(34), 32, true],
    ['a deep branch beside flat ones', { a: 1, b: [1], c: [[[1]]], d: {} }, 3, true],
  ])('compares the depth of %s with the limit', (_what, value, levels, isDeeper) => {
    expect(isDeeperThan(value, levels)).toBe(isDeeper)
  })

  test('does not recurse', () => {
    expect(isDeeperThan(nested(90_000), 100_000)).toBe(false)
  })
})
