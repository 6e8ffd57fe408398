import type { AcquiredSession, ClaimedRun, NextRun } from '@workflow-service/database'
import { describeError } from '@workflow-service/service-kit'
import type { RunnerContext } from '../runner-context.ts'
import { executeRun, type RunOutcome } from '../runs/execute-run.ts'
import type { LeasedSession } from './active-sessions.ts'
import type { Released } from './session-store.ts'

/**
 * Executes all pending starts of a session that was just acquired, one after the other in the order accepted, and
 * releases the session. Never rejects: after an unexpected error the lease expires, and a sweep acquires the session
 * again.
 */
export async function runSession(ctx: RunnerContext, session: LeasedSession, acquired: AcquiredSession): Promise<void> {
  try {
    let next: NextRun | Released = acquired.run
      ? { kind: 'run', run: acquired.run }
      : await ctx.sessionStore.claimNext(session)
    let prefetchedSources: AcquiredSession['sources'] | undefined = acquired.sources
    while (next.kind === 'run') {
      const { run } = next
      ctx.changeNotices.add(run.organizationId, 'runs')
      const outcome = await executeRun(ctx, session, run, prefetchedSources)
      prefetchedSources = undefined
      if (outcome.kind === 'lease_lost') return reportLostLease(ctx, session)
      if (outcome.kind === 'interrupted') return await releaseSession(ctx, session)
      if (outcome.kind === 'parked') return await parkSession(ctx, session, outcome.delayMs)
      if (outcome.kind === 'succeeded' && outcome.isRecorded) {
        ctx.changeNotices.add(run.organizationId, 'runs', 'sessions')
        return
      }
      next = await finishRun(ctx, session, run, outcome)
    }
    if (next.kind === 'idle') await releaseSession(ctx, session)
    if (next.kind === 'lease_lost') reportLostLease(ctx, session)
  } catch (error) {
    if (session.abandoned.aborted) return
    ctx.logger.error({ session_id: session.sessionId, error: describeError(error) }, 'session.abandoned')
  }
}

/** Logs and counts, once, that a lease was lost, and stops the session's run. */
export function reportLostLease(ctx: RunnerContext, session: LeasedSession): void {
  if (!ctx.activeSessions.markLost(session)) return
  ctx.runnerMetrics.leasesLost.inc()
  ctx.logger.warn({ session_id: session.sessionId, epoch: session.epoch }, 'lease.lost')
}

/** Records how the run ended, and claims the next one. Without one, or when the runner stops, releases the session. */
async function finishRun(
  ctx: RunnerContext,
  session: LeasedSession,
  run: ClaimedRun,
  outcome: RunOutcome & { kind: 'succeeded' | 'failed' },
): Promise<NextRun | Released> {
  const isStopping = session.interrupted.aborted
  const next = await ctx.sessionStore.finishRun(session, {
    number: run.number,
    status: outcome.kind,
    error: outcome.kind === 'failed' ? outcome.error : null,
    shouldClaimNext: !isStopping,
  })
  ctx.changeNotices.add(run.organizationId, 'runs', 'sessions')
  if (next.kind === 'released' && isStopping) wakeOtherRunners(ctx, session)
  return next
}

/** Releases the session, and wakes another runner so that a run that was interrupted continues at once. */
async function releaseSession(ctx: RunnerContext, session: LeasedSession): Promise<void> {
  await ctx.sessionStore.release(session)
  wakeOtherRunners(ctx, session)
}

/** Releases the session. No message: the sweep finds the session when the delay is over. */
async function parkSession(ctx: RunnerContext, session: LeasedSession, delayMs: number): Promise<void> {
  await ctx.sessionStore.release(session, delayMs)
  ctx.changeNotices.add(session.organizationId, 'runs', 'sessions')
}

function wakeOtherRunners({ sessionQueue }: RunnerContext, { sessionId }: LeasedSession): void {
  void sessionQueue.publish({ session_id: sessionId })
}
