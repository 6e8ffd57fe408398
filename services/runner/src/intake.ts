import { FIRST_ORGANIZATION, isDatabaseUnavailable, type AcquiredSessions } from '@workflow-service/database'
import { describeError } from '@workflow-service/service-kit'
import type { AppContext } from './app-context.ts'
import type { LeaseKeeper } from './lease-keeper.ts'
import { runSession } from './run-session.ts'

/** Takes sessions up, as places allow. */
export interface Intake {
  /**
   * A session may have work. Resolves when it was taken up, or need not be, or cannot be now: then the sweep finds it.
   * With all places taken it holds the caller for a moment, so that the messages go to runners that have some free.
   */
  offer(sessionId: string): Promise<void>
  /** Takes nothing more. Resolves when the statement under way has ended. */
  stop(): Promise<void>
  /** Resolves when every session that was taken has ended. */
  settle(): Promise<void>
}

const MAX_OFFERS = 200

interface Offer {
  readonly sessionId: string
  readonly done: () => void
}

/**
 * One loop takes sessions: those that were offered and, every few seconds or when a place becomes free while work is known
 * to wait, whatever waits longest. One statement at a time, so places and shares are never exceeded; offers that come
 * meanwhile go together in the next.
 */
export function startIntake(ctx: AppContext, leases: Pick<LeaseKeeper, 'ensureFresh'>): Intake {
  const { held, store, logger, runnerMetrics } = ctx
  const offers: Offer[] = []
  const sessions = new Set<Promise<void>>()
  let from = FIRST_ORGANIZATION
  let isTimeToSweep = true
  // Work is known to wait that the statements left behind; a place came free since the last sweep.
  let hasBacklog = false
  let hasFreed = false
  const stopping = new AbortController()
  let isAway = false
  let wake = Promise.withResolvers<void>()
  let placeFreed = Promise.withResolvers<void>()

  const launch = ({ sessions: taken, isMore }: AcquiredSessions, by: 'message' | 'sweep'): void => {
    hasBacklog ||= isMore
    runnerMetrics.sessionsTaken.inc({ by }, taken.length)
    for (const each of taken) {
      const session = held.add(each)
      const running = runSession(ctx, session, each.run).finally(() => {
        sessions.delete(running)
        held.remove(session)
        placeFreed.resolve()
        placeFreed = Promise.withResolvers()
        hasFreed = true
        if (hasBacklog) wake.resolve()
      })
      sessions.add(running)
    }
  }

  const takeOffered = async (): Promise<void> => {
    const batch = offers.splice(0, MAX_OFFERS)
    try {
      if (batch.length === 0) return
      if (held.free === 0) hasBacklog = true
      else launch(await store.take([...new Set(batch.map(({ sessionId }) => sessionId))]), 'message')
    } finally {
      for (const { done } of batch) done()
    }
  }

  // Either may come first: a session may end while the statement is under way that leaves work behind.
  const isSweepDue = (): boolean => held.free > 0 && (isTimeToSweep || (hasBacklog && hasFreed))

  const sweep = async (): Promise<void> => {
    if (!isSweepDue()) return
    isTimeToSweep = hasBacklog = hasFreed = false
    const taken = await store.takeWaiting(from)
    launch(taken, 'sweep')
    from = taken.next
    if (from === FIRST_ORGANIZATION) return
    // It did not look at all organizations; the next one goes on behind the last.
    hasBacklog = true
    if (taken.sessions.length > 0) isTimeToSweep = true
  }

  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await wake.promise
      wake = Promise.withResolvers()
      // What comes in the same turn of the event loop goes together.
      await new Promise((resume) => setImmediate(resume))
      if (stopping.signal.aborted) return
      let hasFailed = false
      try {
        await leases.ensureFresh()
        await takeOffered()
        await sweep()
        if (isAway) logger.info('the database is back')
        isAway = false
      } catch (error) {
        hasFailed = true
        if (!isDatabaseUnavailable(error))
          logger.error({ error: describeError(error) }, 'sessions could not be taken up')
        else if (!isAway) logger.warn({ error: describeError(error) }, 'the database is away; sessions wait for it')
        isAway = isDatabaseUnavailable(error)
        for (const { done } of offers.splice(0)) done()
      }
      // What failed is tried again when it is time to sweep or a message comes, and not before.
      if (offers.length > 0 || (isSweepDue() && !hasFailed)) wake.resolve()
    }
  }

  const timer = setInterval(() => {
    isTimeToSweep = true
    wake.resolve()
  }, ctx.timing.sweepMs)
  wake.resolve()
  const looping = loop()

  return {
    async offer(sessionId) {
      if (stopping.signal.aborted) return
      if (held.free === 0) {
        hasBacklog = true
        await soon(placeFreed.promise, ctx.timing.holdMs)
        return
      }
      const { promise, resolve } = Promise.withResolvers<void>()
      offers.push({ sessionId, done: resolve })
      wake.resolve()
      await promise
    },
    async stop() {
      stopping.abort()
      clearInterval(timer)
      wake.resolve()
      placeFreed.resolve()
      await looping
      for (const { done } of offers.splice(0)) done()
    },
    async settle() {
      while (sessions.size > 0) await Promise.all(sessions)
    },
  }
}

/** Waits for the promise, but no longer than that. */
async function soon(promise: Promise<void>, timeoutMs: number): Promise<void> {
  const { promise: expired, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, timeoutMs)
  await Promise.race([promise, expired])
  clearTimeout(timer)
}
