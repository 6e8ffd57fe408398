import { isNote } from '@workflow-service/contract'
import { backoff } from '@workflow-service/service-kit'
import { NOT_AVAILABLE, RunError, RunParkedError } from '../../run-errors.ts'
import { ModelError, type ModelErrorCode } from './model-error.ts'
import type { ModelAnswer, ModelQuestion } from './model-question.ts'
import { type ModelClock, type ModelRun, PARK_AFTER_MS } from './model-run.ts'
import type { AnswerCost } from './spending.ts'

/** Requests for one answer while the API gives unreadable ones, before the run fails. */
const MAX_UNREADABLE = 6

/** Delays in the slot, on top of what the API asks for. After a limit they are short: the gate sets the pace. */
const IN_SLOT_DELAYS = {
  limited: { firstMs: 250, maxMs: 8_000 },
  unavailable: { firstMs: 1_000, maxMs: 60_000 },
  unreadable: { firstMs: 1_000, maxMs: 60_000 },
} as const
/**
 * How long a run is parked after its own failed requests, at least; twice as long each further time. The gate spreads
 * the others.
 */
const FIRST_PARK_MS = 10_000
const MAX_PARK_MS = 300_000

/** The model's API is unavailable, and its fallback is to give the answer. */
export class ModelOutageError extends Error {
  override name = 'ModelOutageError'
}

/** Errors that only the operator can repair: another model may work. */
const BROKEN: ReadonlySet<ModelErrorCode> = new Set(['model_unauthorized', 'model_quota_exceeded', 'model_not_found'])

/**
 * Asks the model of the run for one answer, and repeats the request while that may help. `latencyMs` is the time of the
 * request that was answered. `cost` is reserved before each request, and released after one that failed.
 *
 * While the API limits requests or is unavailable, only time bounds the repetition: AGENT_RATE_LIMIT_SECONDS, over all
 * attempts. Each request waits for its turn at the gate; a run that would be in its slot for more than PARK_AFTER_MS is
 * parked, and a parked run of an unavailable API makes one request each time. Of requests with unreadable answers it
 * makes at most MAX_UNREADABLE. With a fallback, nothing is parked: it takes over, after its time or for an error
 * that only the operator can repair.
 * @throws RunError with the error's code when no retry helps; RunParkedError; ModelOutageError; ModelError of the kind
 *   `too_long`; the reason of the signal that aborted.
 */
export async function askWithRetries(
  ctx: ModelRun,
  question: ModelQuestion,
  cost: Pick<AnswerCost, 'reserve' | 'release'>,
): Promise<{ readonly answer: ModelAnswer; readonly latencyMs: number }> {
  const { run, steps, ask, clock, fallback, outage, log } = ctx
  const wait = createWait(ctx)
  const nextDelayMs = createDelays('unreadable', clock)
  for (let unreadable = 0; ;) {
    await wait.forTurn()
    await cost.reserve(question)
    const [askedMs, startedMs] = [clock.monotonic(), performance.now()]
    const answer = await ask(question, run.abandoned).catch((error: unknown) => {
      if (error instanceof ModelError) return error
      throw error
    })
    if (!(answer instanceof ModelError)) {
      outage.sinceMs = null
      return { answer, latencyMs: performance.now() - startedMs }
    }
    await cost.release()
    const { code, kind, message, detail } = answer
    log('warn', 'model.request_failed', { code, error: detail })
    // The API answers again.
    if (kind === 'too_long' || kind === 'permanent') outage.sinceMs = null
    run.interrupted.throwIfAborted()
    if (kind === 'too_long') throw answer
    if (fallback && BROKEN.has(code)) throw new ModelOutageError('The model cannot be used')
    if (kind === 'permanent') throw new RunError(code, message)
    if (kind !== 'unreadable') {
      await wait.afterFailure(answer, kind, clock.monotonic() - askedMs)
      continue
    }
    unreadable += 1
    if (unreadable === MAX_UNREADABLE) throw new RunError(code, `${message} (gave up after ${MAX_UNREADABLE} requests)`)
    const delayMs = Math.round(nextDelayMs())
    const next = `The next request follows in ${formatSeconds(delayMs)} (${unreadable + 1} of ${MAX_UNREADABLE}).`
    await steps.note('model_retry', `${message}. ${next}`)
    await clock.sleep(delayMs, run.interrupted)
  }
}

function createDelays(kind: keyof typeof IN_SLOT_DELAYS, { random }: ModelClock): () => number {
  return backoff({ ...IN_SLOT_DELAYS[kind], hasJitter: true, random })
}

/** The waiting for the model: in the run's slot at first, then without one. */
function createWait({ run, steps, config, pace, gate, clock, fallback, outage }: ModelRun) {
  const { maxWaitMs, fallbackAfterMs } = config
  const waited = findWait(steps.all)
  const maxInSlotMs = fallback ? Math.min(PARK_AFTER_MS, fallbackAfterMs) : PARK_AFTER_MS
  const nextDelayMs = { limited: createDelays('limited', clock), unavailable: createDelays('unavailable', clock) }
  // What the journal says is by the database's clock.
  let sinceMs = waited.since && clock.monotonic() - Math.max(0, Date.parse(run.claimedAt) - waited.since.getTime())
  let inSlotMs = 0

  const sleepInSlot = async (delayMs: number): Promise<void> => {
    await clock.sleep(delayMs, run.interrupted)
    inSlotMs += delayMs
  }
  const park = async (delayMs: number, why: string): Promise<never> => {
    if (fallback) throw new ModelOutageError(why)
    sinceMs ??= clock.monotonic()
    const leftMs = sinceMs + maxWaitMs - clock.monotonic()
    if (leftMs <= 0) throw givenUp(sinceMs)
    const parkedMs = Math.round(Math.min(delayMs, leftMs))
    const until = new Date(clock.now() + parkedMs).toISOString().slice(0, 19).replace('T', ' ')
    const text = `${why}. The run waits, and continues at ${until} UTC or a little later.`
    await steps.note('run_parked', text)
    throw new RunParkedError(why, parkedMs)
  }
  const givenUp = (firstMs: number): RunError =>
    new RunError('model_unavailable', `${NOT_AVAILABLE} (gave up after ${formatSeconds(clock.monotonic() - firstMs)})`)

  return {
    /** Waits for the request's turn at the gate. */
    async forTurn(): Promise<void> {
      let isRepeated = false
      for (;;) {
        const maxDelayMs = Math.max(0, maxInSlotMs - inSlotMs)
        const { organizationId } = run
        const slot = await gate.reserve(pace, { organizationId, maxDelayMs, isRepeated }, run.abandoned)
        const { delayMs, isReserved } = slot
        if (delayMs > maxDelayMs) await park(delayMs, "The model's API limits requests")
        if (delayMs > 0) await sleepInSlot(delayMs)
        if (!isReserved) continue
        if (!gate.isBlocked(pace)) return
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
      if (isLimited) await gate.recordLimit(pace, retryAfterMs ?? 0, run.abandoned)
      sinceMs ??= clock.monotonic()
      inSlotMs += requestMs
      outage.sinceMs ??= clock.monotonic() - requestMs
      const outageMs = clock.monotonic() - outage.sinceMs
      if (fallback && outageMs >= fallbackAfterMs) throw new ModelOutageError(message)
      const wantedMs = Math.round((retryAfterMs ?? 0) + nextDelayMs[kind]())
      // The last request before the fallback is sent at the end of its time.
      const leftMs = fallback ? Math.max(retryAfterMs ?? 0, fallbackAfterMs - outageMs) : Infinity
      const delayMs = Math.min(wantedMs, leftMs)
      if (!fallback && clock.monotonic() + delayMs > sinceMs + maxWaitMs) throw givenUp(sinceMs)
      if ((isLimited || waited.parks === 0) && inSlotMs + delayMs <= maxInSlotMs) {
        const text = `${message}. The next request follows in ${formatSeconds(delayMs)} or later.`
        await steps.note(isLimited ? 'model_limited' : 'model_retry', text)
        return await sleepInSlot(delayMs)
      }
      const growingMs = Math.min(FIRST_PARK_MS * 2 ** waited.parks, MAX_PARK_MS)
      await park(Math.max(delayMs, growingMs) * (1 + clock.random() / 2), message)
    },
  }
}

/**
 * How the answer has waited so far, in earlier attempts too: by the notes after the last answer, model, or wait for a
 * budget, in which the API was not asked.
 */
function findWait(all: ModelRun['steps']['all']): { readonly since: Date | null; readonly parks: number } {
  const begin = all.findLastIndex(
    (step) => step.kind === 'model_answer' || isNote(step, 'model_fallback', 'budget_spent'),
  )
  const notes = all.slice(begin + 1).filter((step) => isNote(step, 'model_retry', 'model_limited', 'run_parked'))
  const [first] = notes
  return {
    since: first && 'createdAt' in first ? first.createdAt : null,
    parks: notes.filter((step) => isNote(step, 'run_parked')).length,
  }
}

function formatSeconds(ms: number): string {
  return `${(ms / 1_000).toLocaleString('en', { maximumFractionDigits: 1 })} s`
}
