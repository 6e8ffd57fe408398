import {
  assignRequestId,
  handleErrors,
  handleNotFound,
  healthRoutes,
  type RunningService,
  startHttpServer,
  withTimeout,
} from '@workflow-service/service-kit'
import express from 'express'
import { checkAgent } from './agent/create-agent.ts'
import { type RunnerContext, createRunnerContext, type RunnerOverrides } from './runner-context.ts'
import { startAutoRuns } from './auto-runs.ts'
import type { RunnerConfig } from './config.ts'
import { startLeaseRenewer } from './sessions/lease-renewer.ts'
import { reportLostLease } from './sessions/run-session.ts'
import { SessionScheduler } from './sessions/session-scheduler.ts'

export type { RunnerOverrides, RunnerTiming } from './runner-context.ts'

/** A running runner. */
export interface RunningRunner extends RunningService {
  /** The port of /healthz, /readyz and /metrics. */
  readonly port: number
  /** Idempotent. */
  stop(): Promise<void>
}

/** Maximum unacknowledged messages: few, so that the queue gives the others to runners with free slots. */
const MAX_PREFETCH = 64

/** Starts the runner. Rejects when it cannot listen, or the model does not take its options. Database, broker and dispatcher may be unavailable at first. */
export async function startRunner(config: RunnerConfig, overrides: RunnerOverrides = {}): Promise<RunningRunner> {
  if (!overrides.agent) await checkAgent(config.agent)
  const ctx = await createRunnerContext(config, overrides)
  try {
    let isStopping = false
    const http = await startHttpServer(createApp(ctx, { isStopping: () => isStopping }), {
      host: config.host,
      port: config.port,
    })
    const { activeSessions, sessionStore, timing, logger } = ctx
    const leaseRenewer = startLeaseRenewer({
      activeSessions,
      store: sessionStore,
      leaseMs: timing.leaseMs,
      renewMs: timing.renewMs,
      logger,
      onLost: (session) => reportLostLease(ctx, session),
    })
    const scheduler = new SessionScheduler(ctx, leaseRenewer)
    const autoRuns = startAutoRuns(ctx, timing.autoRunMs)
    const consumer = await ctx.sessionQueue.consume(({ session_id }) => scheduler.offer(session_id), {
      prefetch: Math.min(config.concurrency, MAX_PREFETCH),
    })
    logger.info({ port: http.port, slots: config.concurrency }, 'service.started')
    const stop = async (): Promise<void> => {
      isStopping = true
      // Acquire nothing new; let runs under way reach their next step boundary, and renew their leases until then.
      const stopping = [scheduler.stop(), autoRuns.stop(), consumer.close()]
      activeSessions.interruptAll()
      await Promise.all(stopping)
      await waitForSessions(ctx, scheduler)
      await leaseRenewer.stop()
      await http.close(0)
      await ctx.dispose()
    }
    let stopped: Promise<void> | undefined
    // No load balancer sends requests to a runner.
    return { logger, shutdownDelayMs: 0, port: http.port, stop: () => (stopped ??= stop()) }
  } catch (error) {
    await ctx.dispose()
    throw error
  }
}

/** The time for abandoned sessions to be released. */
const RELEASE_MS = 2_000

/** Waits for the active sessions, and abandons them after the grace period: a slow statement does not hold up the stop. */
async function waitForSessions(
  { activeSessions, timing, logger }: RunnerContext,
  scheduler: SessionScheduler,
): Promise<void> {
  const isIdle = await withTimeout(scheduler.whenIdle(), timing.graceMs).then(
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

function createApp(
  { db, sessionQueue, metrics, logger }: RunnerContext,
  { isStopping }: { readonly isStopping: () => boolean },
): express.Express {
  const app = express()
  app.disable('x-powered-by')
  app.use(assignRequestId)
  app.use(
    healthRoutes({ metrics, isStopping, checks: { postgres: () => db.ping(), rabbitmq: () => sessionQueue.ping() } }),
  )
  app.use(handleNotFound)
  app.use(handleErrors(logger))
  return app
}
