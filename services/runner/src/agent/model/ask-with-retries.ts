import { backoff } from '@workflow-service/service-kit'
import { RunError } from '../../run-errors.ts'
import { sleep } from '../../sleep.ts'
import { ModelError } from './model-error.ts'
import type { AskModel, ModelAnswer, ModelQuestion } from './model-question.ts'

/** Requests for one answer before the run fails. */
const MAX_REQUESTS = 6
const FIRST_DELAY_MS = 1_000
const MAX_DELAY_MS = 60_000

/** Time and randomness; tests replace them. */
export interface ModelClock {
  readonly now: () => number
  readonly random: () => number
  readonly sleep: (delayMs: number, signal: AbortSignal) => Promise<void>
}

export const systemClock: ModelClock = { now: Date.now, random: Math.random, sleep }

export interface RetryOptions {
  readonly retryMs: number
  readonly clock: ModelClock
  /** Ends the delay before a retry. */
  readonly signal: AbortSignal
  /** Ends a request under way. */
  readonly abort: AbortSignal
  /** Called before each delay. */
  readonly onRetry: (text: string) => Promise<void>
}

/**
 * Asks the model for one answer, and repeats the request after a transient error, after a growing delay or the one that the API asks
 * for, up to MAX_REQUESTS requests and `retryMs` of delays in total.
 * @throws RunError with the error's code when no retry helps, or the reason of the signal that aborted.
 */
export async function askWithRetries(
  ask: AskModel,
  question: ModelQuestion,
  { retryMs, clock, signal, abort, onRetry }: RetryOptions,
): Promise<ModelAnswer> {
  const nextDelayMs = backoff({ firstMs: FIRST_DELAY_MS, maxMs: MAX_DELAY_MS, hasJitter: true, random: clock.random })
  let waitedMs = 0
  for (let request = 1; ; request += 1) {
    const answer = await ask(question, abort).catch((error: unknown) => {
      if (error instanceof ModelError) return error
      throw error
    })
    if (!(answer instanceof ModelError)) return answer
    signal.throwIfAborted()
    const { code, kind, message, retryAfterMs } = answer
    if (kind === 'permanent' || kind === 'too_long') throw new RunError(code, message)
    const delayMs = retryAfterMs ?? Math.round(nextDelayMs())
    if (request === MAX_REQUESTS || waitedMs + delayMs > retryMs) {
      const why =
        request === MAX_REQUESTS
          ? `, ${formatSeconds(waitedMs)} of delays in total`
          : `: the next one would have to wait ${formatSeconds(delayMs)}`
      throw new RunError(code, `${message} (gave up after request ${request} of ${MAX_REQUESTS}${why})`)
    }
    await onRetry(
      `${message}. The next request follows in ${formatSeconds(delayMs)} (${request + 1} of ${MAX_REQUESTS}).`,
    )
    await clock.sleep(delayMs, signal)
    waitedMs += delayMs
  }
}

function formatSeconds(ms: number): string {
  return `${(ms / 1_000).toLocaleString('en', { maximumFractionDigits: 1 })} s`
}
