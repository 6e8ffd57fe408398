import { backoff } from '@workflow-service/service-kit'
import { NOT_AVAILABLE, RunError, RunParkedError } from '../../run-errors.ts'
import { sleep } from '../../sleep.ts'
import { ModelError, type ModelErrorCode } from './model-error.ts'
import type { ModelGate } from './model-gate.ts'
import type { AskModel, ModelAnswer, ModelQuestion } from './model-question.ts'

/** Requests for one answer while the API gives unreadable ones, before the run fails. */
const MAX_UNREADABLE = 6

/** Delays in the slot, on top of what the API asks for. After a limit they are short: the gate sets the pace. */
const IN_SLOT_DELAYS = {
  limited: { firstMs: 250, maxMs: 8_000 },
  unavailable: { firstMs: 1_000, maxMs: 60_000 },
  unreadable: { firstMs: 1_000, maxMs: 60_000 },
} as const
/** A run that would wait longer for an answer, its failed requests included, gives its slot back. */
export const PARK_AFTER_MS = 30_000
/**
 * How long a run is parked after its own failed requests, at least; twice as long each further time. The gate spreads
 * the others.
 */
const FIRST_PARK_MS = 10_000
const MAX_PARK_MS = 300_000

/** Time and randomness; tests replace them. */
export interface ModelClock {
  readonly now: () => number
  readonly random: () => number
  readonly sleep: (delayMs: number, signal: AbortSignal) => Promise<void>
}

export const systemClock: ModelClock = { now: Date.now, random: Math.random, sleep }

/** How an answer has waited for the model so far, in earlier attempts too. */
export interface WaitedSoFar {
  /** Since when, in milliseconds since 1970; null if it has not. */
  readonly sinceMs: number | null
  /** How many times its run was parked. */
  readonly parks: number
}

export interface RetryOptions {
  readonly model: string
  /** How long one answer waits at most while the API limits requests or is unavailable. */
  readonly maxWaitMs: number
  readonly gate: ModelGate
  readonly clock: ModelClock
  readonly waited: WaitedSoFar
  /** The outage of the model and when its fallback takes over; absent: it has none. */
  readonly fallback?: { readonly afterMs: number; readonly outage: ModelOutage }
  /** Ends the delay before a retry. */
  readonly signal: AbortSignal
  /** Ends a request under way. */
  readonly abort: AbortSignal
  /** Called before each request, in its turn; an error ends the answer. */
  readonly beforeRequest: () => Promise<void>
  /** Called after a request that failed. */
  readonly afterFailure: () => Promise<void>
  /** Writes a note to the journal. */
  readonly onNote: (code: RetryNote, text: string) => Promise<void>
  /** Called with the error of each request, for the operator. */
  readonly onError: (error: ModelError) => void
}

/** Since when the API of a model has answered no request of this process. */
export class ModelOutage {
  private sinceMs: number | null = null

  /** A request that began at this time failed. Returns for how long all have. */
  failed(startedMs: number, nowMs: number): number {
    this.sinceMs ??= startedMs
    return nowMs - this.sinceMs
  }

  answered(): void {
    this.sinceMs = null
  }
}

/** The model's API is unavailable, and its fallback is to give the answer. */
export class ModelOutageError extends Error {
  override name = 'ModelOutageError'
}

/** Errors that only the operator can repair: another model may work. */
const BROKEN: ReadonlySet<ModelErrorCode> = new Set(['model_unauthorized', 'model_quota_exceeded', 'model_not_found'])

/** Codes of the journal's notes about requests that are repeated. */
export const RETRY_NOTES = { retry: 'model_retry', limited: 'model_limited', parked: 'run_parked' } as const
export type RetryNote = (typeof RETRY_NOTES)[keyof typeof RETRY_NOTES]

/**
 * Asks the model for one answer, and repeats the request while that may help.
 *
 * While the API limits requests or is unavailable, only time bounds the repetition: `maxWaitMs`, over all attempts.
 * Each request waits for its turn at the gate; a run that would be in its slot for more than PARK_AFTER_MS is parked,
 * and a parked run of an unavailable API makes one request each time. After an unreadable answer it repeats the request
 * up to MAX_UNREADABLE times. With a fallback, nothing is parked: it takes over, after its time or for an error that
 * only the operator can repair.
 * @throws RunError with the error's code when no retry helps; RunParkedError; ModelOutageError; ModelError of the kind
 *   `too_long`; the reason of the signal that aborted.
 */
export async function askWithRetries(
  ask: AskModel,
  question: ModelQuestion,
  options: RetryOptions,
): Promise<ModelAnswer> {
  const { clock, fallback, signal, abort, beforeRequest, afterFailure, onNote, onError } = options
  const wait = createWait(options)
  const nextDelayMs = createDelays('unreadable', clock)
  for (let unreadable = 0; ;) {
    await wait.forTurn()
    await beforeRequest()
    const askedMs = clock.now()
    const answer = await ask(question, abort).catch((error: unknown) => {
      if (error instanceof ModelError) return error
      throw error
    })
    if (!(answer instanceof ModelError)) {
      fallback?.outage.answered()
      return answer
    }
    await afterFailure()
    onError(answer)
    signal.throwIfAborted()
    const { code, kind, message } = answer
    if (kind === 'too_long') throw answer
    if (fallback && BROKEN.has(code)) throw new ModelOutageError('The model cannot be used')
    if (kind === 'permanent') throw new RunError(code, message)
    if (kind !== 'unreadable') {
      await wait.afterFailure(answer, kind, clock.now() - askedMs)
      continue
    }
    unreadable += 1
    if (unreadable === MAX_UNREADABLE) throw new RunError(code, `${message} (gave up after ${MAX_UNREADABLE} requests)`)
    const delayMs = Math.round(nextDelayMs())
    const next = `The next request follows in ${formatSeconds(delayMs)} (${unreadable + 1} of ${MAX_UNREADABLE}).`
    await onNote(RETRY_NOTES.retry, `${message}. ${next}`)
    await clock.sleep(delayMs, signal)
  }
}

function createDelays(kind: keyof typeof IN_SLOT_DELAYS, { random }: ModelClock): () => number {
  return backoff({ ...IN_SLOT_DELAYS[kind], hasJitter: true, random })
}

/** The waiting for the model: in the run's slot at first, then without one. */
function createWait({ model, maxWaitMs, gate, clock, waited, fallback, signal, abort, onNote }: RetryOptions) {
  const maxInSlotMs = Math.min(PARK_AFTER_MS, fallback?.afterMs ?? PARK_AFTER_MS)
  const nextDelayMs = { limited: createDelays('limited', clock), unavailable: createDelays('unavailable', clock) }
  let sinceMs = waited.sinceMs
  let inSlotMs = 0

  const sleepInSlot = async (delayMs: number): Promise<void> => {
    await clock.sleep(delayMs, signal)
    inSlotMs += delayMs
  }
  const park = async (delayMs: number, why: string): Promise<never> => {
    if (fallback) throw new ModelOutageError(why)
    sinceMs ??= clock.now()
    const leftMs = sinceMs + maxWaitMs - clock.now()
    if (leftMs <= 0) throw givenUp(sinceMs)
    const parkedMs = Math.round(Math.min(delayMs, leftMs))
    const until = new Date(clock.now() + parkedMs).toISOString().slice(0, 19).replace('T', ' ')
    const text = `${why}. The run waits, and continues at ${until} UTC or a little later.`
    await onNote(RETRY_NOTES.parked, text)
    throw new RunParkedError(text, parkedMs)
  }
  const givenUp = (firstMs: number): RunError =>
    new RunError('model_unavailable', `${NOT_AVAILABLE} (gave up after ${formatSeconds(clock.now() - firstMs)})`)

  return {
    /** Waits for the request's turn at the gate. */
    async forTurn(): Promise<void> {
      let isRepeated = false
      for (;;) {
        const maxDelayMs = Math.max(0, maxInSlotMs - inSlotMs)
        const { delayMs, isReserved } = await gate.reserve(model, { maxDelayMs, isRepeated }, abort)
        if (delayMs > maxDelayMs) await park(delayMs, "The model's API limits requests")
        if (delayMs > 0) await sleepInSlot(delayMs)
        if (!isReserved) continue
        if (!gate.isBlocked(model)) return
        isRepeated = true
      }
    },
    /** Waits after a request that failed, and that took `requestMs` in the slot. */
    async afterFailure(
      { message, retryAfterMs }: ModelError,
      kind: 'limited' | 'unavailable',
      requestMs: number,
    ): Promise<void> {
      const isLimited = kind === 'limited'
      if (isLimited) await gate.recordLimit(model, retryAfterMs ?? 0, abort)
      sinceMs ??= clock.now()
      inSlotMs += requestMs
      const outageMs = fallback?.outage.failed(clock.now() - requestMs, clock.now()) ?? 0
      if (fallback && outageMs >= fallback.afterMs) throw new ModelOutageError(message)
      const wantedMs = Math.round((retryAfterMs ?? 0) + nextDelayMs[kind]())
      // The last request before the fallback is sent at the end of its time.
      const leftMs = fallback ? Math.max(retryAfterMs ?? 0, fallback.afterMs - outageMs) : Infinity
      const delayMs = Math.min(wantedMs, leftMs)
      if (!fallback && clock.now() + delayMs > sinceMs + maxWaitMs) throw givenUp(sinceMs)
      if ((isLimited || waited.parks === 0) && inSlotMs + delayMs <= maxInSlotMs) {
        const text = `${message}. The next request follows in ${formatSeconds(delayMs)} or later.`
        await onNote(isLimited ? RETRY_NOTES.limited : RETRY_NOTES.retry, text)
        return await sleepInSlot(delayMs)
      }
      const growingMs = Math.min(FIRST_PARK_MS * 2 ** waited.parks, MAX_PARK_MS)
      await park(Math.max(delayMs, growingMs) * (1 + clock.random() / 2), message)
    },
  }
}

function formatSeconds(ms: number): string {
  return `${(ms / 1_000).toLocaleString('en', { maximumFractionDigits: 1 })} s`
}
