import { expect, test } from '@jest/globals'
import type { NewJournalStep } from '@workflow-service/contract'
import { modelConfig, NO_USAGE as usage } from '../../../test/support/model-config.ts'
import { openAgentSteps } from '../agent-steps.ts'
import type { AgentRun } from '../agent.ts'
import { type ModelRun, systemClock } from './model-run.ts'
import { costOf, costOfNextAnswer } from './spending.ts'

// 0.25, 0.025, 0.3125, 2 and 3 for a million tokens.
const prices = {
  currency: 'USD',
  input: 250_000,
  cacheRead: 25_000,
  cacheWrite: 312_500,
  output: 2_000_000,
  reasoning: 3_000_000,
}

test.each([
  [{ input_tokens: 1_000_000 }, 250_000],
  [{ input_tokens: 1_000_000, cache_read_tokens: 400_000, cache_write_tokens: 100_000 }, 125_000 + 10_000 + 31_250],
  [{ output_tokens: 1_000, reasoning_tokens: 400 }, 1_200 + 1_200],
  [{ input_tokens: 1 }, 1],
  [{ input_tokens: 5, output_tokens: 1 }, 4],
  [{ input_tokens: 9_007_199_254_740_991 }, 2_251_799_813_685_248],
  [{ input_tokens: 10, cache_read_tokens: 20 }, 1],
])('the tokens %j cost %d millionths: cached and reasoning tokens apart, rounded up', (tokens, cost) => {
  expect(costOf({ ...usage, ...tokens }, prices)).toBe(cost)
})

test('an answer without tokens has no known cost', () => {
  expect(costOf({ ...usage, input_tokens: null, output_tokens: null }, prices)).toBeNull()
})

test.each([
  [1_500.2, 1_501],
  [86_400_000, 600_000],
])('a run that waits for the next day or month continues when it begins: %d ms from now', async (waitMs, delayMs) => {
  const exceeded = { kind: 'exceeded', scope: 'day', budget: 1, spent: 1, waitMs } as const
  const notes: unknown[] = []
  const run = {
    steps: [],
    append: async (added: NewJournalStep[]) => void notes.push(...added.map(({ data }) => 'code' in data && data.code)),
    reserveCost: async () => exceeded,
  } as unknown as AgentRun
  const steps = openAgentSteps(run)
  const config = modelConfig({ prices })
  const cost = costOfNextAnswer({ run, steps, config, clock: systemClock, log: () => {} } as unknown as ModelRun, 1)
  const question = { instructions: '', messages: [], tools: {} }
  for (let time = 0; time < 2; time += 1) await expect(cost.reserve(question)).rejects.toMatchObject({ delayMs })
  expect(notes).toEqual(['budget_spent'])
  await steps.note('model_limited', 'The API limits requests')
  await expect(cost.reserve(question)).rejects.toMatchObject({ delayMs })
  expect(notes).toEqual(['budget_spent', 'model_limited', 'budget_spent'])
})

test.each([
  [{}, 8_192],
  [{ thinking: { type: 'enabled', budgetTokens: 20_000 } }, 28_192],
  [{ thinking: { type: 'enabled' } }, 9_216],
  [{ thinking: { type: 'adaptive' } }, 8_192],
  [{ reasoningConfig: { type: 'enabled', budgetTokens: 4_000 } }, 12_192],
])('with the options %j, a request reserves %d tokens of output', async (provider, tokens) => {
  let reserved = 0
  const run = {
    steps: [],
    reserveCost: async ({ amount }: { amount: number }) => ({ kind: 'reserved', amount: (reserved = amount) }),
  } as unknown as AgentRun
  const config = modelConfig({ prices, options: { call: {}, provider } })
  const cost = costOfNextAnswer({ run, steps: openAgentSteps(run), config } as unknown as ModelRun, 1)
  await cost.reserve({ instructions: '', messages: [], tools: {} })
  expect(Math.round((reserved * 1_000_000) / prices.reasoning)).toBe(tokens)
})
