import { describe, expect, test } from '@jest/globals'
import { RunError, type RunParkedError } from '../../run-errors.ts'
import { askWithRetries, type RetryOptions } from './ask-with-retries.ts'
import { ModelError } from './model-error.ts'
import type { ModelGate } from './model-gate.ts'
import type { ModelAnswer, ModelQuestion } from './model-question.ts'

const question: ModelQuestion = { instructions: '', messages: [], tools: {} }
const usage = {
  inputTokens: 1,
  cacheReadTokens: null,
  cacheWriteTokens: null,
  outputTokens: 1,
  reasoningTokens: null,
}
const answer: ModelAnswer = { parts: [], finishReason: 'stop', rawFinishReason: null, usage, responseId: null }
const limited = (retryAfterMs: number | null = null) =>
  new ModelError('model_unavailable', 'It is limited', 'limited', retryAfterMs)
const unavailable = new ModelError('model_unavailable', 'It is unavailable', 'transient')

/** Asks a model that gives these errors first, with a clock that only delays move. */
async function ask(errors: readonly ModelError[], changes: Partial<RetryOptions> = {}) {
  let nowMs = 1_000_000
  const delays: number[] = []
  const notes: string[] = []
  const queue = [...errors]
  const recorded: number[] = []
  const gate: ModelGate = {
    reserve: () => Promise.resolve({ delayMs: 0, isReserved: true }),
    isBlocked: () => false,
    recordLimit: async (_model, retryAfterMs) => void recorded.push(retryAfterMs),
    ...changes.gate,
  }
  const result = await askWithRetries(
    () => {
      const error = queue.shift()
      return error ? Promise.reject(error) : Promise.resolve(answer)
    },
    question,
    {
      model: 'openai:x',
      retryMs: 300_000,
      rateLimitMs: 3_600_000,
      limited: { sinceMs: null, parks: 0 },
      signal: new AbortController().signal,
      abort: new AbortController().signal,
      onNote: async (code) => void notes.push(code),
      ...changes,
      gate,
      clock: {
        now: () => nowMs,
        random: () => 0,
        async sleep(delayMs) {
          delays.push(delayMs)
          nowMs += delayMs
        },
      },
    },
  ).catch((error: unknown) => error)
  return { result, delays, notes, recorded }
}

/** Asks a model that limits one request, in a run that was parked before, and resolves to how long the run is parked. */
async function park(parks: number, retryAfterMs: number): Promise<number> {
  const { result } = await ask([limited(retryAfterMs)], { limited: { sinceMs: 1_000_000, parks } })
  return (result as RunParkedError).delayMs
}

/** A gate that gives these times, and the options that it was asked with. */
function createGate(slots: { delayMs: number; isReserved: boolean }[], blocked: boolean[] = []) {
  const asked: Parameters<ModelGate['reserve']>[1][] = []
  const gate: ModelGate = {
    reserve(_model, options) {
      asked.push(options)
      return Promise.resolve(slots.shift()!)
    },
    isBlocked: () => blocked.shift() ?? false,
    recordLimit: () => Promise.resolve(),
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
    expect((await ask(Array.from({ length: 6 }, () => unavailable))).result).toBeInstanceOf(RunError)
  })

  test('parks its run instead of waiting for more than 30 s in its slot', async () => {
    const once = await ask([limited(60_000)])
    expect(once.result).toMatchObject({
      name: 'RunParkedError',
      delayMs: 60_250,
      message:
        'The API of openai:x limits requests. The run waits, and continues at 1970-01-01 00:17:40 UTC or a little later.',
    })
    expect(once).toMatchObject({ delays: [], notes: ['model_limited', 'run_parked'] })
    const often = await ask(Array.from({ length: 10 }, () => limited()))
    expect(often.result).toMatchObject({ name: 'RunParkedError', delayMs: 10_000 })
    expect(often.delays.reduce((sum, delay) => sum + delay, 0)).toBeLessThanOrEqual(30_000)
  })

  test('parks its run longer each time, for five minutes at most unless the API asks for more', async () => {
    expect([await park(1, 29_900), await park(2, 29_900), await park(20, 29_900)]).toEqual([30_150, 40_000, 300_000])
    expect(await park(20, 600_000)).toBe(600_250)
  })

  test('fails when its time is over, over all attempts at the run', async () => {
    const { result } = await ask([limited(60_000)], { limited: { sinceMs: 1_000_000 - 3_580_000, parks: 9 } })
    expect(result).toMatchObject({
      code: 'model_unavailable',
      message: 'It is limited (gave up after 3,580 s)',
    })
  })
})

describe('the gate', () => {
  test('gives each request a time, and another one if the API has limited requests since, which the pace does not count', async () => {
    const { gate, asked } = createGate(
      [
        { delayMs: 900, isReserved: true },
        { delayMs: 4_000, isReserved: false },
        { delayMs: 700, isReserved: true },
        { delayMs: 0, isReserved: true },
      ],
      [true],
    )
    const { result, delays, notes } = await ask([limited(1_000)], { gate })
    expect(result).toBe(answer)
    expect(delays).toEqual([900, 4_000, 700, 1_250])
    expect(asked.map(({ isRepeated }) => isRepeated)).toEqual([false, true, true, false])
    expect(asked.map(({ maxDelayMs }) => maxDelayMs)).toEqual([30_000, 29_100, 25_100, 23_150])
    expect(notes).toEqual(['model_limited'])
  })

  test('parks runs whose time would be too late', async () => {
    const { gate } = createGate([
      { delayMs: 20_000, isReserved: false },
      { delayMs: 10_001, isReserved: false },
    ])
    const { result, delays } = await ask([], { gate })
    expect(result).toMatchObject({ name: 'RunParkedError', delayMs: 10_001 })
    expect(delays).toEqual([20_000])
  })
})
