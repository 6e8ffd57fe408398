import { type OfferedModel, recordModels } from '@workflow-service/database'
import {
  describeError,
  type RunningService,
  type ServiceWork,
  startService,
  withTimeout,
} from '@workflow-service/service-kit'
import { type AgentConfig, BUILTIN } from './agent/agent-settings.ts'
import { checkAgent } from './agent/create-agent.ts'
import { type RunnerContext, createRunnerContext, type RunnerOverrides } from './runner-context.ts'
import { startAutoRuns } from './auto-runs.ts'
import type { RunnerConfig } from './config.ts'
import { retryWhileUnavailable } from './runs/retry-while-unavailable.ts'
import { startEvaluations } from './evaluations.ts'
import { startTrials } from './trials.ts'
import { startLeaseRenewer } from './sessions/lease-renewer.ts'
import { reportLostLease } from './sessions/run-session.ts'
import { watchRunners } from './sessions/runner-watch.ts'
import { SessionScheduler } from './sessions/session-scheduler.ts'

export type { RunnerOverrides, RunnerTiming } from './runner-context.ts'

/** Maximum unacknowledged messages: few, so that the queue gives the others to runners with free slots. */
const MAX_PREFETCH = 64

/**
 * Starts the runner. Rejects when it cannot listen, or the model does not take its options. Database, broker and
 * dispatcher may be unavailable at first.
 */
export async function startRunner(config: RunnerConfig, overrides: RunnerOverrides = {}): Promise<RunningService> {
  if (!overrides.agent) await checkAgent(config.agent)
  const ctx = await createRunnerContext(config, overrides)
  return await startService(ctx, {
    startWork: () => startWork(ctx),
    checks: { postgres: () => ctx.db.ping(), rabbitmq: () => ctx.sessionQueue.ping() },
    startedFields: { slots: config.concurrency },
  })
}

async function startWork(ctx: RunnerContext): Promise<ServiceWork> {
  const { activeSessions, timing } = ctx
  const leaseRenewer = startLeaseRenewer(ctx, (session) => reportLostLease(ctx, session))
  const scheduler = new SessionScheduler(ctx, leaseRenewer)
  const runnerWatch = watchRunners(ctx, (owners) => scheduler.takeOver(owners))
  const models = offerModels(ctx)
  const autoRuns = startAutoRuns(ctx, timing.autoRunMs)
  const trials = startTrials(ctx, timing.trialMs)
  const evaluations = startEvaluations(ctx, timing.trialMs)
  const consumer = await ctx.sessionQueue.consume(({ session_id }) => scheduler.offer(session_id), {
    prefetch: Math.min(ctx.config.concurrency, MAX_PREFETCH),
  })
  return {
    stop: async () => {
      // Acquire nothing new; let runs under way reach their next step boundary, and renew their leases until then.
      const tasks = [autoRuns, trials, evaluations, models]
      const sessionsEnded = waitForSessions(ctx, scheduler)
      const stopping = [consumer.close(), ...tasks.map((task) => task.stop())]
      activeSessions.interruptAll()
      await Promise.all([sessionsEnded, ...stopping])
      await leaseRenewer.stop()
      await withTimeout(runnerWatch.stop(activeSessions.size === 0), RELEASE_MS).catch(() => {})
    },
  }
}

/** Records what this runner offers, for the people who choose. Repeats it while the database is unavailable. */
function offerModels({ config, db, logger }: RunnerContext): { stop: () => Promise<void> } {
  const stopping = new AbortController()
  const recorded = retryWhileUnavailable({ db, signal: stopping.signal }, () =>
    recordModels(db, listModels(config.agent)),
  ).catch((error: unknown) => {
    if (!stopping.signal.aborted) logger.warn({ error: describeError(error) }, 'model.not_offered')
  })
  return {
    stop() {
      stopping.abort()
      return recorded
    },
  }
}

function listModels({ defaultModel, models }: AgentConfig): OfferedModel[] {
  const builtin = { data_region: null, currency: null, fallback: null, organization_ids: [], reads: [] }
  return [
    { name: BUILTIN, model: BUILTIN, is_default: defaultModel === BUILTIN, ...builtin },
    ...[...models.values()].map((config) => ({
      name: config.name,
      model: `${config.provider}:${config.modelName}`,
      is_default: config.name === defaultModel,
      data_region: config.dataRegion,
      currency: config.prices?.currency ?? null,
      fallback: config.fallback,
      organization_ids: config.organizationIds,
      reads: config.reads,
    })),
  ]
}

/** The time for abandoned sessions to be released. */
const RELEASE_MS = 2_000

/**
 * Stops the scheduler, waits for the active sessions, and abandons them after the grace period: neither a slow
 * statement nor a broker that does not answer holds up the stop.
 */
async function waitForSessions(
  { activeSessions, timing, logger }: RunnerContext,
  scheduler: SessionScheduler,
): Promise<void> {
  const ended = scheduler.stop().then(() => scheduler.whenIdle())
  const isIdle = await withTimeout(ended, timing.graceMs).then(
    () => true,
    () => false,
  )
  if (isIdle) return
  logger.warn({ sessions: activeSessions.size }, 'service.grace_ended')
  activeSessions.abortAll()
  await withTimeout(scheduler.whenIdle(), RELEASE_MS).catch(() =>
    logger.warn({ sessions: activeSessions.size }, 'session.release_failed'),
  )
}
