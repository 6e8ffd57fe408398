import { setImmediate } from 'node:timers/promises'
import {
  type AcquiredSession,
  type AcquiredSessions,
  NIL_UUID,
  isDatabaseUnavailable,
  TOO_MANY_ATTEMPTS,
} from '@workflow-service/database'
import { describeError, repeat, withTimeout } from '@workflow-service/service-kit'
import type { AppContext } from '../app-context.ts'
import { createAvailabilityLog } from '../availability-log.ts'
import type { LeaseRenewer } from './lease-renewer.ts'
import { runSession } from './run-session.ts'

/** Acquires sessions and runs them, as slots allow. */
export interface SessionScheduler {
  /**
   * Handles a message that says that a session may have work. Resolves when the session was acquired, or did not need to
   * be, or cannot be now: then the sweep finds it. While all slots are taken, it waits up to `slotWaitMs` for a free one, so
   * that the queue gives the other messages to runners with free slots.
   */
  offer(sessionId: string): Promise<void>
  /** Acquires nothing more. Resolves when the statement under way has ended. */
  stop(): Promise<void>
  /** Resolves when no acquired session is running any more. */
  whenIdle(): Promise<void>
}

const MAX_OFFERS_PER_STATEMENT = 200

interface Offer {
  readonly sessionId: string
  readonly done: () => void
}

/**
 * Starts the loop that acquires sessions. Each round acquires the sessions that were offered since the last one, and
 * sweeps when that is due: every `sweepMs`, and as soon as a slot is free while sessions are known to wait. A sweep
 * acquires the sessions that have waited longest, published or not. Rounds never overlap, so that slots and the share of
 * one organization are never exceeded.
 */
export function startSessionScheduler(
  ctx: AppContext,
  leaseRenewer: Pick<LeaseRenewer, 'ensureFresh'>,
): SessionScheduler {
  const { activeSessions, sessionStore, logger, runnerMetrics, timing } = ctx
  const offers: Offer[] = []
  const running = new Set<Promise<void>>()
  let isStopped = false
  let slotFreed = Promise.withResolvers<void>()

  let sweepFrom = NIL_UUID
  let isSweepTime = true
  // Two flags, because a slot can become free before or after the answer of the statement that leaves sessions waiting.
  let hasWaitingSessions = false
  let hasFreedSlot = false
  const isSweepDue = (): boolean =>
    activeSessions.freeSlots > 0 && (isSweepTime || (hasWaitingSessions && hasFreedSlot))

  const availability = createAvailabilityLog(logger, {
    unavailable: 'database.unavailable',
    available: 'database.available',
  })

  const startSessions = ({ sessions, isMore }: AcquiredSessions, by: 'message' | 'sweep'): void => {
    hasWaitingSessions ||= isMore
    runnerMetrics.sessionsAcquired.inc({ by }, sessions.length)
    for (const acquired of sessions) {
      if (acquired.exhaustedRunId !== null) reportExhaustedRun(ctx, acquired, acquired.exhaustedRunId)
      const session = activeSessions.add(acquired)
      const ended = runSession(ctx, session, acquired).finally(() => {
        running.delete(ended)
        activeSessions.remove(session)
        slotFreed.resolve()
        slotFreed = Promise.withResolvers()
        hasFreedSlot = true
        if (hasWaitingSessions) rounds.trigger()
      })
      running.add(ended)
    }
  }

  const acquireOffered = async (): Promise<void> => {
    const batch = offers.splice(0, MAX_OFFERS_PER_STATEMENT)
    try {
      if (batch.length === 0) return
      if (activeSessions.freeSlots === 0) hasWaitingSessions = true
      else startSessions(await sessionStore.acquire([...new Set(batch.map(({ sessionId }) => sessionId))]), 'message')
    } finally {
      for (const { done } of batch) done()
    }
  }

  const sweep = async (): Promise<void> => {
    isSweepTime = hasWaitingSessions = hasFreedSlot = false
    const acquired = await sessionStore.acquireWaiting(sweepFrom)
    startSessions(acquired, 'sweep')
    sweepFrom = acquired.next
    if (sweepFrom === NIL_UUID) return
    // One sweep looks at a limited number of organizations; the next one continues behind them.
    hasWaitingSessions = true
    if (acquired.sessions.length > 0) isSweepTime = true
  }

  const rounds = repeat({
    name: 'acquire sessions',
    intervalMs: timing.sweepMs,
    logger,
    async run(signal) {
      // Offers of the same turn of the event loop share one statement.
      await setImmediate()
      if (signal.aborted) return
      await leaseRenewer.ensureFresh()
      await acquireOffered()
      if (isSweepDue()) await sweep()
      availability.reportAvailable()
      if (offers.length > 0 || isSweepDue()) rounds.trigger()
    },
    onError(error) {
      if (isDatabaseUnavailable(error)) availability.reportUnavailable({ error: describeError(error) })
      else logger.error({ error: describeError(error) }, 'session.acquire_failed')
      for (const { done } of offers.splice(0)) done()
    },
  })
  // Its own timer: a round for an offer must not postpone the sweep.
  const sweepTimer = setInterval(() => {
    isSweepTime = true
    rounds.trigger()
  }, timing.sweepMs)

  return {
    async offer(sessionId) {
      if (isStopped) return
      if (activeSessions.freeSlots === 0) {
        hasWaitingSessions = true
        await withTimeout(slotFreed.promise, timing.slotWaitMs).catch(() => {})
        return
      }
      const { promise, resolve } = Promise.withResolvers<void>()
      offers.push({ sessionId, done: resolve })
      rounds.trigger()
      await promise
    },
    async stop() {
      isStopped = true
      clearInterval(sweepTimer)
      slotFreed.resolve()
      await rounds.stop()
      for (const { done } of offers.splice(0)) done()
    },
    async whenIdle() {
      while (running.size > 0) await Promise.all(running)
    },
  }
}

/** Logs and counts a run that ended because it had no attempt left. */
function reportExhaustedRun(
  { logger, runnerMetrics }: AppContext,
  { lease, organizationId }: AcquiredSession,
  runId: string,
): void {
  runnerMetrics.runs.inc({ outcome: 'failed' })
  const { sessionId } = lease
  logger.info(
    {
      run_id: runId,
      session_id: sessionId,
      organization_id: organizationId,
      outcome: 'failed',
      reason: TOO_MANY_ATTEMPTS,
    },
    'run.ended',
  )
}
