import { backoff } from '@workflow-service/service-kit'
import { RunError, RunParkedError } from '../../run-errors.ts'
import { sleep } from '../../sleep.ts'
import { ModelError } from './model-error.ts'
import type { ModelGate } from './model-gate.ts'
import type { AskModel, ModelAnswer, ModelQuestion } from './model-question.ts'

/** Requests for one answer after transient errors before the run fails. */
const MAX_REQUESTS = 6
const FIRST_DELAY_MS = 1_000
const MAX_DELAY_MS = 60_000

/** Delays after a limited request, on top of what the API asks for: the gate sets the pace. */
const FIRST_LIMITED_DELAY_MS = 250
const MAX_LIMITED_DELAY_MS = 8_000
/** A run that would wait longer for the model's rate limit gives its slot back. */
export const PARK_AFTER_MS = 30_000
/** How long a run is parked after its own limited requests, at least; twice as long each further time. The gate spreads the others. */
const FIRST_PARK_MS = 10_000
const MAX_PARK_MS = 300_000

/** Time and randomness; tests replace them. */
export interface ModelClock {
  readonly now: () => number
  readonly random: () => number
  readonly sleep: (delayMs: number, signal: AbortSignal) => Promise<void>
}

export const systemClock: ModelClock = { now: Date.now, random: Math.random, sleep }

/** How an answer has waited for the model's rate limit so far, in earlier attempts too. */
export interface LimitedSoFar {
  /** Since when, in milliseconds since 1970; null if it has not. */
  readonly sinceMs: number | null
  /** How many times its run was parked. */
  readonly parks: number
}

export interface RetryOptions {
  readonly model: string
  readonly retryMs: number
  readonly rateLimitMs: number
  readonly gate: ModelGate
  readonly clock: ModelClock
  readonly limited: LimitedSoFar
  /** Ends the delay before a retry. */
  readonly signal: AbortSignal
  /** Ends a request under way. */
  readonly abort: AbortSignal
  /** Writes a note to the journal. */
  readonly onNote: (code: RetryNote, text: string) => Promise<void>
}

/** Codes of the journal's notes about requests that are repeated. */
export type RetryNote = 'model_retry' | typeof LIMITED_NOTE | typeof PARKED_NOTE
export const LIMITED_NOTE = 'model_limited'
export const PARKED_NOTE = 'run_parked'

/**
 * Asks the model for one answer, and repeats the request while that may help.
 *
 * After a transient error it repeats it after a growing delay or the one that the API asks for, up to MAX_REQUESTS requests and
 * `retryMs` of delays. While the API limits requests, only time bounds the repetition: `rateLimitMs`, over all attempts. Each
 * request then waits for its turn at the gate; a run that would wait for more than PARK_AFTER_MS in total is parked.
 * @throws RunError with the error's code when no retry helps; RunParkedError; ModelError of the kind `too_long`; the reason of the
 * signal that aborted.
 */
export async function askWithRetries(
  ask: AskModel,
  question: ModelQuestion,
  options: RetryOptions,
): Promise<ModelAnswer> {
  const { retryMs, clock, signal, abort, onNote } = options
  const wait = createLimitedWait(options)
  const nextDelayMs = backoff({ firstMs: FIRST_DELAY_MS, maxMs: MAX_DELAY_MS, hasJitter: true, random: clock.random })
  let waitedMs = 0
  for (let request = 1; ;) {
    await wait.forTurn()
    const answer = await ask(question, abort).catch((error: unknown) => {
      if (error instanceof ModelError) return error
      throw error
    })
    if (!(answer instanceof ModelError)) return answer
    signal.throwIfAborted()
    const { code, kind, message, retryAfterMs } = answer
    if (kind === 'too_long') throw answer
    if (kind === 'permanent') throw new RunError(code, message)
    if (kind === 'limited') {
      await wait.afterLimit(answer)
      continue
    }
    const delayMs = retryAfterMs ?? Math.round(nextDelayMs())
    if (request === MAX_REQUESTS || waitedMs + delayMs > retryMs) {
      const why =
        request === MAX_REQUESTS
          ? `, ${formatSeconds(waitedMs)} of delays in total`
          : `: the next one would have to wait ${formatSeconds(delayMs)}`
      throw new RunError(code, `${message} (gave up after request ${request} of ${MAX_REQUESTS}${why})`)
    }
    request += 1
    const next = `The next request follows in ${formatSeconds(delayMs)} (${request} of ${MAX_REQUESTS}).`
    await onNote('model_retry', `${message}. ${next}`)
    await clock.sleep(delayMs, signal)
    waitedMs += delayMs
  }
}

/** The waiting for the model's rate limit: in the run's slot at first, then without one. */
function createLimitedWait({ model, rateLimitMs, gate, clock, limited, signal, abort, onNote }: RetryOptions) {
  const nextDelayMs = backoff({
    firstMs: FIRST_LIMITED_DELAY_MS,
    maxMs: MAX_LIMITED_DELAY_MS,
    hasJitter: true,
    random: clock.random,
  })
  let sinceMs = limited.sinceMs
  let inSlotMs = 0

  const sleepInSlot = async (delayMs: number): Promise<void> => {
    await clock.sleep(delayMs, signal)
    inSlotMs += delayMs
  }
  const park = async (delayMs: number): Promise<never> => {
    sinceMs ??= clock.now()
    const leftMs = sinceMs + rateLimitMs - clock.now()
    if (leftMs <= 0) throw givenUp(`The requests to ${model} are limited`, sinceMs)
    const parkedMs = Math.round(Math.min(delayMs, leftMs))
    const until = new Date(clock.now() + parkedMs).toISOString().slice(0, 19).replace('T', ' ')
    const text = `The API of ${model} limits requests. The run waits, and continues at ${until} UTC or a little later.`
    await onNote(PARKED_NOTE, text)
    throw new RunParkedError(text, parkedMs)
  }
  const givenUp = (message: string, firstMs: number): RunError =>
    new RunError('model_unavailable', `${message} (gave up after ${formatSeconds(clock.now() - firstMs)})`)

  return {
    /** Waits for the request's turn at the gate. */
    async forTurn(): Promise<void> {
      let isRepeated = false
      for (;;) {
        const maxDelayMs = PARK_AFTER_MS - inSlotMs
        const { delayMs, isReserved } = await gate.reserve(model, { maxDelayMs, isRepeated }, abort)
        if (delayMs > maxDelayMs) await park(delayMs)
        if (delayMs > 0) await sleepInSlot(delayMs)
        if (!isReserved) continue
        if (!gate.isBlocked(model)) return
        isRepeated = true
      }
    },
    /** Waits after a request that the API limited. */
    async afterLimit({ message, retryAfterMs }: ModelError): Promise<void> {
      await gate.recordLimit(model, retryAfterMs ?? 0, abort)
      sinceMs ??= clock.now()
      const delayMs = Math.round((retryAfterMs ?? 0) + nextDelayMs())
      if (clock.now() + delayMs > sinceMs + rateLimitMs) throw givenUp(message, sinceMs)
      await onNote(LIMITED_NOTE, `${message}. The next request follows in ${formatSeconds(delayMs)} or later.`)
      if (inSlotMs + delayMs <= PARK_AFTER_MS) return await sleepInSlot(delayMs)
      const growingMs = Math.min(FIRST_PARK_MS * 2 ** limited.parks, MAX_PARK_MS)
      await park(Math.max(delayMs, growingMs) * (1 + clock.random() / 2))
    },
  }
}

function formatSeconds(ms: number): string {
  return `${(ms / 1_000).toLocaleString('en', { maximumFractionDigits: 1 })} s`
}
