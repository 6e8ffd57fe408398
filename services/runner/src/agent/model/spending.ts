import { isNote } from '@workflow-service/contract'
import type { CostReservation } from '@workflow-service/database'
import { RunError, RunParkedError } from '../../run-errors.ts'
import { type ModelConfig, type ModelPrices, PRICED_OUTPUT_TOKENS } from '../agent-settings.ts'
import type { ModelQuestion, ModelUsage } from './model-question.ts'
import { listPaid, type ModelRun, PARK_AFTER_MS } from './model-run.ts'
import { BYTES_PER_TOKEN } from './session-history.ts'

/** A reservation whose request has had no end for this long after its time limit is of a runner that has ended. */
const EXPIRY_MARGIN_MS = 60_000
const BUSY_DELAY_MS = 250
const BUSY_PARK_MS = 10_000
/** A run that waits for the next day or month asks again this often, and when a budget is saved. */
const SPENT_PARK_MS = 600_000

/**
 * What an answer costs, in millionths of the currency, rounded up. Cached tokens are a part of the input, reasoning of
 * the output. Null if the provider reports no tokens.
 */
export function costOf(usage: ModelUsage, prices: ModelPrices): number | null {
  const { input_tokens: input, output_tokens: output } = usage
  if (input === null && output === null) return null
  const read = usage.cache_read_tokens ?? 0
  const written = usage.cache_write_tokens ?? 0
  const reasoning = usage.reasoning_tokens ?? 0
  const millionths =
    Math.max(0, (input ?? 0) - read - written) * prices.input +
    read * prices.cacheRead +
    written * prices.cacheWrite +
    Math.max(0, (output ?? 0) - reasoning) * prices.output +
    reasoning * prices.reasoning
  return Math.ceil(millionths / 1_000_000)
}

/** What a request may cost at most, as far as its size and limit tell. */
function estimateCost(
  { instructions, messages, tools, files = [] }: ModelQuestion,
  config: ModelConfig,
  prices: ModelPrices,
) {
  const bytes = Buffer.byteLength(instructions) + Buffer.byteLength(JSON.stringify([messages, tools]))
  const input = files.reduce((sum, { tokens }) => sum + tokens, Math.ceil(bytes / BYTES_PER_TOKEN))
  const output = (config.maxOutputTokens ?? PRICED_OUTPUT_TOKENS) + thinkingTokens(config)
  const micros = input * Math.max(prices.input, prices.cacheWrite) + output * Math.max(prices.output, prices.reasoning)
  return Math.ceil(micros / 1_000_000)
}

/** A budget of tokens for thinking, which the packages of Anthropic and Bedrock add to the limit of an answer. */
function thinkingTokens({ options: { provider } }: ModelConfig): number {
  const { type, budgetTokens } = Object(provider['thinking'] ?? provider['reasoningConfig'])
  // Without one, the package of Anthropic takes the least that its API takes.
  return type === 'enabled' ? Number(budgetTokens ?? 1_024) : 0
}

/** The money of one answer: reserved before each request, and settled after it. */
export interface AnswerCost {
  /**
   * Waits until the request may begin.
   * @throws RunError `budget_exceeded`; RunParkedError if the run is to wait for the next day or month.
   */
  reserve(question: ModelQuestion): Promise<void>
  /** Reserves the money for one request, or says why not. */
  tryReserve(question: ModelQuestion): Promise<CostReservation>
  /** After a request without an answer, which no API reports the tokens of. */
  release(): Promise<void>
  /** What an answer with these tokens costs; what was reserved if the provider reports none. Null without prices. */
  of(usage: ModelUsage): { readonly micros: number; readonly currency: string } | null
}

const FREE: AnswerCost = {
  reserve: () => Promise.resolve(),
  tryReserve: () => Promise.resolve({ kind: 'reserved' }),
  release: () => Promise.resolve(),
  of: () => null,
}

/**
 * Creates the cost of the run's next answer. Without prices nothing is reserved.
 * @param turn The number of the answer; 0: a summary of the session.
 */
export function costOfNextAnswer({ run, steps, config, clock, log }: ModelRun, turn: number): AnswerCost {
  const { prices } = config
  if (!prices) return FREE
  const expiresInMs = config.timeoutMs + EXPIRY_MARGIN_MS
  const runSpent = listPaid(steps).reduce((sum, { cost_micros: cost }) => sum + (cost ?? 0), 0)
  let amount = 0
  const stop = async (exceeded: Extract<CostReservation, { kind: 'exceeded' }>): Promise<never> => {
    const text = describeExceeded(exceeded, prices.currency)
    log('warn', 'budget.exceeded', { scope: exceeded.scope })
    if (exceeded.waitMs === null) throw new RunError('budget_exceeded', text)
    // Once for each wait, which ends that for the API.
    const last = steps.all.at(-1)
    if (!last || !isNote(last, 'budget_spent')) {
      await steps.note('budget_spent', `${text}. The run waits for the next ${exceeded.scope}.`)
    }
    throw new RunParkedError(text, Math.ceil(Math.min(exceeded.waitMs, SPENT_PARK_MS)))
  }
  const tryReserve: AnswerCost['tryReserve'] = (question) => {
    amount = estimateCost(question, config, prices)
    return run.reserveCost({ turn, amount, runSpent, expiresInMs })
  }
  return {
    tryReserve,
    async reserve(question) {
      for (let waitedMs = 0; ;) {
        const reservation = await tryReserve(question)
        if (reservation.kind === 'reserved') return
        if (reservation.kind === 'exceeded') await stop(reservation)
        if (waitedMs >= PARK_AFTER_MS) throw new RunParkedError('Other runs use up the budget', BUSY_PARK_MS)
        const delayMs = BUSY_DELAY_MS * (1 + clock.random())
        await clock.sleep(delayMs, run.interrupted)
        waitedMs += delayMs
      }
    },
    release: () => run.settleCost(turn, 0),
    of: (usage) => ({ micros: costOf(usage, prices) ?? amount, currency: prices.currency }),
  }
}

const WHOSE = { run: 'a run of the workflow', day: 'the workflow for a day', month: 'the organization for a month' }

function describeExceeded({ scope, budget, spent }: Extract<CostReservation, { kind: 'exceeded' }>, currency: string) {
  return `The budget of ${WHOSE[scope]} is ${formatMoney(budget, currency)}, and ${formatMoney(spent, currency)} are spent; raise it, or make the task smaller`
}

function formatMoney(micros: number, currency: string): string {
  return `${(micros / 1_000_000).toFixed(micros % 10_000 === 0 ? 2 : 6)} ${currency}`
}
