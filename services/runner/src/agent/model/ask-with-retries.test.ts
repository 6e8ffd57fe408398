import { describe, expect, test } from '@jest/globals'
import { createClock } from '../../../test/support/model-agent.ts'
import { modelConfig, NO_USAGE as usage } from '../../../test/support/model-config.ts'
import { RunError, type RunParkedError } from '../../run-errors.ts'
import { askWithRetries } from './ask-with-retries.ts'
import { ModelError } from './model-error.ts'
import { type ModelGate, OPEN_GATE } from './model-gate.ts'
import type { ModelAnswer, ModelQuestion } from './model-question.ts'
import type { ModelRun } from './model-run.ts'

const question: ModelQuestion = { instructions: '', messages: [], tools: {} }
const answer: ModelAnswer = { parts: [], finishReason: 'stop', rawFinishReason: null, usage, responseId: null }
const limited = (retryAfterMs: number | null = null) =>
  new ModelError('model_unavailable', 'limited', 'It is limited', { retryAfterMs })
const unavailable = (retryAfterMs: number | null = null) =>
  new ModelError('model_unavailable', 'unavailable', 'It is unavailable', { detail: 'secret', retryAfterMs })
const unreadable = new ModelError('model_answer_invalid', 'unreadable', 'It is unreadable')

interface Waited {
  readonly gate?: Partial<ModelGate>
  readonly sinceMs?: number
  /** How many times the run was parked. */
  readonly parks?: number
  /** Whether it has waited for a budget since then. */
  readonly hasWaitedForBudget?: boolean
  /** How far the runner's time of day is ahead of the database's, and by how much each request sets it forward. */
  readonly aheadMs?: number
}

/**
 * Asks a model that gives these errors first, each after `requestMs`, with a clock that only delays and requests move.
 */
async function ask(
  errors: readonly ModelError[],
  { gate, sinceMs, parks = 0, hasWaitedForBudget = false, aheadMs = 0 }: Waited = {},
  requestMs = 0,
) {
  const clock = createClock(1_000_000)
  clock.now = () => clock.nowMs + (requests + 1) * aheadMs
  const notes: string[] = []
  const texts: string[] = []
  const queue = [...errors]
  const reported: unknown[] = []
  let requests = 0
  const recorded: number[] = []
  const createdAt = new Date(sinceMs ?? 0)
  const codes = ['model_retry', ...Array<string>(parks).fill('run_parked')]
  if (hasWaitedForBudget) codes.push('budget_spent')
  const waited = codes.map((code) => ({ kind: 'note', data: { code, text: '' }, createdAt }))
  const { signal } = new AbortController()
  const ctx = {
    run: { claimedAt: new Date(clock.nowMs).toISOString(), interrupted: signal, abandoned: signal },
    steps: {
      all: sinceMs === undefined ? [] : waited,
      note: async (code: string, text: string) => void (notes.push(code), texts.push(text)),
    },
    config: modelConfig({ maxWaitMs: 3_600_000 }),
    pace: 'openai:x',
    ask() {
      const error = queue.shift()
      requests += 1
      clock.nowMs += requestMs
      return error ? Promise.reject(error) : Promise.resolve(answer)
    },
    outage: { sinceMs: null },
    gate: {
      ...OPEN_GATE,
      recordLimit: async (_model: string, retryAfterMs: number) => void recorded.push(retryAfterMs),
      ...gate,
    },
    clock,
    log: (_level: string, _event: string, { error }: { error: string }) => void reported.push(error),
  } as unknown as ModelRun
  const cost = { reserve: async () => {}, release: async () => {} }
  const result = await askWithRetries(ctx, question, cost).then(
    (answered) => answered.answer,
    (error: unknown) => error,
  )
  return { result, delays: clock.delays, notes, texts, recorded, reported, requests }
}

/**
 * Asks a model that limits one request, in a run that was parked before, and resolves to how long the run is parked.
 */
async function park(parks: number, retryAfterMs: number): Promise<number> {
  const { result } = await ask([limited(retryAfterMs)], { sinceMs: 1_000_000, parks })
  return (result as RunParkedError).delayMs
}

const slot = (delayMs: number, isReserved = true) => ({ delayMs, isReserved })

/** A gate that gives these times, and the options that it was asked with. */
function createGate(slots: ReturnType<typeof slot>[], blocked: boolean[] = []) {
  const asked: Parameters<ModelGate['reserve']>[1][] = []
  const gate: ModelGate = {
    ...OPEN_GATE,
    reserve(_model, options) {
      asked.push(options)
      return Promise.resolve(slots.shift()!)
    },
    isBlocked: () => blocked.shift() ?? false,
  }
  return { gate, asked }
}

describe('a request that the API limits', () => {
  test('is repeated after what the API asks for and a growing delay, more often than after other errors', async () => {
    const { result, delays, recorded, notes } = await ask(Array.from({ length: 6 }, () => limited(1_000)))
    expect(result).toBe(answer)
    expect(delays).toEqual([1_250, 1_500, 2_000, 3_000, 5_000, 9_000])
    expect(recorded).toEqual(Array.from({ length: 6 }, () => 1_000))
    expect(new Set(notes)).toEqual(new Set(['model_limited']))
    expect((await ask(Array.from({ length: 7 }, () => limited(0)))).result).toBe(answer)
    expect((await ask(Array.from({ length: 6 }, () => unreadable))).result).toBeInstanceOf(RunError)
  })

  test('parks its run instead of waiting for more than 30 s in its slot', async () => {
    const once = await ask([limited(60_000)])
    expect(once.result).toMatchObject({
      name: 'RunParkedError',
      delayMs: 60_250,
      message: 'It is limited',
    })
    const texts = ['It is limited. The run waits, and continues at 1970-01-01 00:17:40 UTC or a little later.']
    expect(once).toMatchObject({ delays: [], notes: ['run_parked'], texts })
    const often = await ask(Array.from({ length: 10 }, () => limited()))
    expect(often.result).toMatchObject({ name: 'RunParkedError', delayMs: 10_000 })
    expect(often.delays.reduce((sum, delay) => sum + delay, 0)).toBeLessThanOrEqual(30_000)
  })

  test('parks its run longer each time, for five minutes at most unless the API asks for more', async () => {
    expect([await park(1, 29_900), await park(2, 29_900), await park(20, 29_900)]).toEqual([30_150, 40_000, 300_000])
    expect(await park(20, 600_000)).toBe(600_250)
  })

  test('fails when its time is over, over all attempts at the run', async () => {
    const { result } = await ask([limited(60_000)], { sinceMs: 1_000_000 - 3_580_000, parks: 9 })
    expect(result).toMatchObject({
      code: 'model_unavailable',
      message: "The run cannot go on: the service's model is not available (gave up after 3,580 s)",
    })
  })
})

test('the wait for a budget is none for the API, which may limit requests again on the next day', async () => {
  const waited = { sinceMs: 1_000_000 - 86_400_000, parks: 3, hasWaitedForBudget: true }
  expect(await ask([limited(), unavailable()], waited)).toMatchObject({ result: answer, delays: [250, 1_000] })
})

test('a runner whose clock is set forward a day at each request waits as long as any other', async () => {
  const aheadMs = 86_400_000
  const short = await ask([limited(), unavailable(), unreadable], { aheadMs })
  expect(short).toMatchObject({ result: answer, delays: [250, 1_000, 1_000] })
  const { result } = await ask([limited(60_000)], { sinceMs: 1_000_000 - 3_000_000, parks: 9, aheadMs })
  expect(result).toMatchObject({ name: 'RunParkedError', delayMs: 300_000 })
})

describe('a request to an API that is unavailable', () => {
  test('is repeated after growing delays, and parks its run instead of holding its slot for more than 30 s', async () => {
    const short = await ask([unavailable(), unavailable()])
    expect(short).toMatchObject({ result: answer, delays: [1_000, 2_000], notes: ['model_retry', 'model_retry'] })
    expect(short.recorded).toEqual([])
    const long = await ask(Array.from({ length: 9 }, () => unavailable()))
    expect(long.result).toMatchObject({ name: 'RunParkedError', delayMs: 16_000 })
    expect(long).toMatchObject({ delays: [1_000, 2_000, 4_000, 8_000], requests: 5 })
    expect(long.reported).toEqual(Array.from({ length: 5 }, () => 'secret'))
  })

  test('parks its run at once when the request itself took more than 30 s', async () => {
    const { result, delays, requests } = await ask([unavailable()], {}, 120_000)
    expect(result).toMatchObject({ name: 'RunParkedError', delayMs: 10_000 })
    expect({ delays, requests }).toEqual({ delays: [], requests: 1 })
  })

  test('is made once each time its run continues, after growing pauses', async () => {
    const pauses = [0, 1, 2, 3, 4, 5, 6].map(async (parks) => {
      const { result, requests } = await ask([unavailable()], { sinceMs: 999_000, parks }, 31_000)
      return [(result as RunParkedError).delayMs, requests]
    })
    const seconds = [10, 20, 40, 80, 160, 300, 300]
    expect(await Promise.all(pauses)).toEqual(seconds.map((each) => [each * 1_000, 1]))
    const probe = await ask([unavailable()], { sinceMs: 999_000, parks: 1 })
    expect(probe).toMatchObject({ result: { delayMs: 20_000 }, delays: [], notes: ['run_parked'] })
  })
})

describe('the gate', () => {
  test('gives each request a time, and another one if the API has limited requests since, which the pace does not count', async () => {
    const { gate, asked } = createGate([slot(900), slot(4_000, false), slot(700), slot(0)], [true])
    const { result, delays, notes } = await ask([limited(1_000)], { gate })
    expect(result).toBe(answer)
    expect(delays).toEqual([900, 4_000, 700, 1_250])
    expect(asked.map(({ isRepeated }) => isRepeated)).toEqual([false, true, true, false])
    expect(asked.map(({ maxDelayMs }) => maxDelayMs)).toEqual([30_000, 29_100, 25_100, 23_150])
    expect(notes).toEqual(['model_limited'])
  })

  test('parks runs whose time would be too late', async () => {
    const { gate } = createGate([slot(20_000, false), slot(10_001, false)])
    const { result, delays } = await ask([], { gate })
    expect(result).toMatchObject({ name: 'RunParkedError', delayMs: 10_001 })
    expect(delays).toEqual([20_000])
  })
})
