import { setImmediate } from 'node:timers/promises'
import {
  type AcquiredSession,
  type AcquiredSessions,
  isDatabaseUnavailable,
  NIL_UUID,
  TOO_MANY_ATTEMPTS,
} from '@workflow-service/database'
import { describeError, type RepeatedTask, repeat, withTimeout } from '@workflow-service/service-kit'
import type { RunnerContext } from '../runner-context.ts'
import { type AvailabilityLog, createAvailabilityLog } from '../availability-log.ts'
import type { LeaseRenewer } from './lease-renewer.ts'
import { runSession } from './run-session.ts'

const MAX_OFFERS_PER_STATEMENT = 200

interface Offer {
  readonly sessionId: string
  readonly done: () => void
}

/**
 * Acquires sessions and runs them, as slots allow, in rounds. Each round acquires the sessions that were offered since
 * the last one, and sweeps when that is due: every `sweepMs`, and as soon as a slot is free while sessions are known to
 * wait. A sweep acquires the sessions that have waited longest, published or not. Rounds never overlap, so that slots
 * and the share of one organization are never exceeded.
 */
export class SessionScheduler {
  readonly #ctx: RunnerContext
  readonly #leaseRenewer: Pick<LeaseRenewer, 'ensureFresh'>
  readonly #availability: AvailabilityLog
  readonly #rounds: RepeatedTask
  readonly #sweepTimer: NodeJS.Timeout
  readonly #offers: Offer[] = []
  readonly #running = new Set<Promise<void>>()
  #isStopped = false
  #slotFreed = Promise.withResolvers<void>()
  #sweepFrom = NIL_UUID
  #endedRunners: readonly string[] = []
  #isSweepTime = true
  // Two flags, because a slot can become free before or after the answer of the statement that leaves sessions waiting.
  #hasWaitingSessions = false
  #hasFreedSlot = false

  /** Begins with a round. */
  constructor(ctx: RunnerContext, leaseRenewer: Pick<LeaseRenewer, 'ensureFresh'>) {
    const { logger, timing } = ctx
    this.#ctx = ctx
    this.#leaseRenewer = leaseRenewer
    this.#availability = createAvailabilityLog(logger, {
      unavailable: 'database.unavailable',
      available: 'database.available',
    })
    this.#rounds = repeat({
      name: 'acquire sessions',
      intervalMs: timing.sweepMs,
      logger,
      run: (signal) => this.#runRound(signal),
      onError: (error) => {
        if (isDatabaseUnavailable(error)) this.#availability.reportUnavailable({ error: describeError(error) })
        else logger.error({ error: describeError(error) }, 'session.acquire_failed')
        this.#settleOffers()
      },
    })
    // Its own timer: a round for an offer must not postpone the sweep.
    this.#sweepTimer = setInterval(() => this.#sweepSoon(), timing.sweepMs)
  }

  /**
   * Handles a message that says that a session may have work. Resolves when the session was acquired, or did not need
   * to be, or cannot be now: then the sweep finds it. While all slots are taken, it waits up to `slotWaitMs` for a free
   * one, so that the queue gives the other messages to runners with free slots.
   */
  async offer(sessionId: string): Promise<void> {
    if (this.#isStopped) return
    const { activeSessions, timing } = this.#ctx
    if (activeSessions.freeSlots === 0) {
      this.#hasWaitingSessions = true
      await withTimeout(this.#slotFreed.promise, timing.slotWaitMs).catch(() => {})
      return
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#offers.push({ sessionId, done: resolve })
    this.#rounds.trigger()
    await promise
  }

  /** Takes over the sessions of runners that have ended, now and in each later sweep. */
  takeOver(endedRunners: readonly string[]): void {
    this.#endedRunners = endedRunners
    if (endedRunners.length > 0) this.#sweepSoon()
  }

  #sweepSoon(): void {
    this.#isSweepTime = true
    this.#rounds.trigger()
  }

  /** Acquires nothing more. Resolves when the statement under way has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    clearInterval(this.#sweepTimer)
    this.#slotFreed.resolve()
    await this.#rounds.stop()
    this.#settleOffers()
  }

  /** Resolves when no acquired session is running any more. */
  async whenIdle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  async #runRound(signal: AbortSignal): Promise<void> {
    // Offers of the same turn of the event loop share one statement.
    await setImmediate()
    if (signal.aborted) return
    await this.#leaseRenewer.ensureFresh()
    await this.#acquireOffered()
    if (this.#isSweepDue()) await this.#sweep()
    this.#availability.reportAvailable()
    if (this.#offers.length > 0 || this.#isSweepDue()) this.#rounds.trigger()
  }

  #isSweepDue(): boolean {
    return (
      this.#ctx.activeSessions.freeSlots > 0 && (this.#isSweepTime || (this.#hasWaitingSessions && this.#hasFreedSlot))
    )
  }

  async #acquireOffered(): Promise<void> {
    const { activeSessions, sessionStore } = this.#ctx
    const batch = this.#offers.splice(0, MAX_OFFERS_PER_STATEMENT)
    try {
      if (batch.length === 0) return
      const sessionIds = [...new Set(batch.map(({ sessionId }) => sessionId))]
      if (activeSessions.freeSlots === 0) this.#hasWaitingSessions = true
      else this.#startSessions(await sessionStore.acquire(sessionIds), 'message')
    } finally {
      for (const { done } of batch) done()
    }
  }

  async #sweep(): Promise<void> {
    this.#isSweepTime = this.#hasWaitingSessions = this.#hasFreedSlot = false
    const acquired = await this.#ctx.sessionStore.acquireWaiting(this.#sweepFrom, this.#endedRunners)
    this.#startSessions(acquired, 'sweep')
    this.#sweepFrom = acquired.next
    if (this.#sweepFrom === NIL_UUID) return
    // One sweep looks at a limited number of organizations; the next one continues behind them.
    this.#hasWaitingSessions = true
    if (acquired.sessions.length > 0) this.#isSweepTime = true
  }

  #startSessions({ sessions, isMore }: AcquiredSessions, by: 'message' | 'sweep'): void {
    const { activeSessions, runnerMetrics } = this.#ctx
    this.#hasWaitingSessions ||= isMore
    runnerMetrics.sessionsAcquired.inc({ by }, sessions.length)
    for (const acquired of sessions) {
      if (acquired.exhaustedRunId !== null) reportExhaustedRun(this.#ctx, acquired, acquired.exhaustedRunId)
      const session = activeSessions.add(acquired)
      const ended = runSession(this.#ctx, session, acquired).finally(() => {
        this.#running.delete(ended)
        activeSessions.remove(session)
        this.#slotFreed.resolve()
        this.#slotFreed = Promise.withResolvers()
        this.#hasFreedSlot = true
        if (this.#hasWaitingSessions) this.#rounds.trigger()
      })
      this.#running.add(ended)
    }
  }

  #settleOffers(): void {
    for (const { done } of this.#offers.splice(0)) done()
  }
}

/** Logs and counts a run that ended because it had no attempt left. */
function reportExhaustedRun(
  { logger, runnerMetrics }: RunnerContext,
  { lease: { sessionId: session_id }, organizationId: organization_id }: AcquiredSession,
  run_id: string,
): void {
  runnerMetrics.runs.inc({ outcome: 'failed' })
  logger.info({ run_id, session_id, organization_id, outcome: 'failed', reason: TOO_MANY_ATTEMPTS }, 'run.ended')
}
