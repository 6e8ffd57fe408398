import { expect, test } from '@jest/globals'
import { costOf } from './spending.ts'

// 0.25, 0.025, 0.3125, 2 and 3 for a million tokens.
const prices = {
  currency: 'USD',
  input: 250_000,
  cacheRead: 25_000,
  cacheWrite: 312_500,
  output: 2_000_000,
  reasoning: 3_000_000,
}
const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: null, cacheWriteTokens: null, reasoningTokens: null }

test.each([
  [{ inputTokens: 1_000_000 }, 250_000],
  [{ inputTokens: 1_000_000, cacheReadTokens: 400_000, cacheWriteTokens: 100_000 }, 125_000 + 10_000 + 31_250],
  [{ outputTokens: 1_000, reasoningTokens: 400 }, 1_200 + 1_200],
  [{ inputTokens: 1 }, 1],
  [{ inputTokens: 5, outputTokens: 1 }, 4],
  [{ inputTokens: 9_007_199_254_740_991 }, 2_251_799_813_685_248],
  [{ inputTokens: 10, cacheReadTokens: 20 }, 1],
])('the tokens %j cost %d millionths: cached and reasoning tokens apart, rounded up', (tokens, cost) => {
  expect(costOf({ ...usage, ...tokens }, prices)).toBe(cost)
})

test('an answer without tokens has no known cost', () => {
  expect(costOf({ ...usage, inputTokens: null, outputTokens: null }, prices)).toBeNull()
})
