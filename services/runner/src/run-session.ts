import type { ClaimedRun, FinishOutcome } from '@workflow-service/database'
import { describeError } from '@workflow-service/service-kit'
import type { AppContext } from './app-context.ts'
import { carryOutRun, type RunEnding, runFields } from './carry-out-run.ts'
import type { HeldSession } from './held-sessions.ts'
import { patiently } from './patiently.ts'

/**
 * Runs everything that is pending in a held session, one start after the other in the order accepted, and lets the
 * session go. Never rejects: what nobody foresaw leaves the lease to run out, and the sweep takes the session up again.
 */
export async function runSession(ctx: AppContext, session: HeldSession, first: ClaimedRun | undefined): Promise<void> {
  try {
    for (let run = first ?? (await nextRun(ctx, session)); run;) {
      const ending = await carryOut(ctx, session, run)
      if (ending.kind === 'lease_lost') {
        loseSession(ctx, session)
        return
      }
      if (ending.kind === 'interrupted') {
        await release(ctx, session)
        return
      }
      run = await finish(ctx, session, run, ending)
    }
  } catch (error) {
    if (!session.abort.aborted) {
      ctx.logger.error({ session_id: session.lease.sessionId, error: describeError(error) }, 'session.given_up')
    }
  }
}

/** Reports a lease that another runner has taken, once. */
export function loseSession(ctx: AppContext, session: HeldSession): void {
  if (!ctx.held.lose(session)) return
  ctx.runnerMetrics.leasesLost.inc()
  ctx.logger.warn({ session_id: session.lease.sessionId, epoch: session.lease.epoch }, 'lease.lost')
}

async function carryOut(ctx: AppContext, session: HeldSession, run: ClaimedRun): Promise<RunEnding> {
  const { runnerMetrics, logger } = ctx
  const beganMs = performance.now()
  logger.debug({ ...runFields(run), number: run.number, attempts: run.attempts }, 'run.taken_up')
  if (run.waitedMs !== undefined) runnerMetrics.startWaits.observe(run.waitedMs / 1_000)
  const ending = session.signal.aborted ? interruption(session) : await carryOutRun(ctx, session, run)
  const durationMs = performance.now() - beganMs
  runnerMetrics.runs.inc({ outcome: ending.kind })
  runnerMetrics.runDurations.observe({ outcome: ending.kind }, durationMs / 1_000)
  logger.info(
    {
      ...runFields(run),
      number: run.number,
      attempts: run.attempts,
      outcome: ending.kind,
      ...(ending.kind === 'failed' ? { reason: ending.error } : {}),
      duration_ms: Math.round(durationMs),
    },
    'run.ended',
  )
  return ending
}

function interruption(session: HeldSession): RunEnding {
  return { kind: session.isLost ? 'lease_lost' : 'interrupted' }
}

/** Records how the run ended, and takes up the session's next start or lets the session go. */
async function finish(
  ctx: AppContext,
  session: HeldSession,
  run: ClaimedRun,
  ending: RunEnding & { kind: 'succeeded' | 'failed' },
): Promise<ClaimedRun | undefined> {
  const { lease } = session
  const goesOn = !session.signal.aborted
  const error = ending.kind === 'failed' ? ending.error : null
  let attempts = 0
  let outcome: FinishOutcome
  session.isEnding = true
  try {
    outcome = await patiently(session, () => {
      attempts++
      return ctx.store.finish({ lease, number: run.number, status: ending.kind, error, goesOn })
    })
  } finally {
    session.isEnding = false
  }
  if (outcome.kind === 'finished') {
    if (!goesOn) wake(ctx, session)
    return outcome.next ?? (outcome.isReleased ? undefined : await nextRun(ctx, session))
  }
  // An answer that was lost may have been of a statement that took effect: then the lease tells what it did.
  if (attempts > 1) return await nextRun(ctx, session)
  loseSession(ctx, session)
  return undefined
}

async function nextRun(ctx: AppContext, session: HeldSession): Promise<ClaimedRun | undefined> {
  const next = await patiently(session, () => ctx.store.claimNext(session.lease))
  if (next.kind === 'run') return next.run
  if (next.kind === 'idle') await release(ctx, session)
  return undefined
}

/** Lets the session go at once and tells the other runners, so that none of them waits for the lease to run out. */
async function release(ctx: AppContext, session: HeldSession): Promise<void> {
  session.isEnding = true
  await patiently(session, () => ctx.store.release(session.lease))
  wake(ctx, session)
}

function wake({ sessionQueue }: AppContext, { lease }: HeldSession): void {
  void sessionQueue.publish({ session_id: lease.sessionId })
}
