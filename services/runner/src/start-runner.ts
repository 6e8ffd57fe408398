import { assignRequestId, handleErrors, handleNotFound, healthRoutes } from '@workflow-service/service-kit'
import { type RunningService, startHttpServer } from '@workflow-service/service-kit'
import express from 'express'
import { type AppContext, createAppContext, type RunnerOverrides } from './app-context.ts'
import { startAutoRuns } from './auto-runs.ts'
import type { RunnerConfig } from './config.ts'
import { type Intake, startIntake } from './intake.ts'
import { startLeaseKeeper } from './lease-keeper.ts'
import { loseSession } from './run-session.ts'

export type { RunnerOverrides, RunnerTiming } from './app-context.ts'

/** A runner at work. */
export interface RunningRunner extends RunningService {
  /** The port of /healthz, /readyz and /metrics. */
  readonly port: number
  /** Safe to repeat. */
  stop(): Promise<void>
}

/** Messages that may wait here for their sessions to be taken: few, so that an idle runner gets the others. */
const MAX_PREFETCH = 64

/** Starts the runner. Rejects when it cannot listen; a neighbour that is away is waited for instead. */
export async function startRunner(config: RunnerConfig, overrides: RunnerOverrides = {}): Promise<RunningRunner> {
  const ctx = createAppContext(config, overrides)
  try {
    const http = await startHttpServer(createApp(ctx), { host: config.host, port: config.port })
    const { held, store, timing, logger } = ctx
    const onLost = (session: Parameters<typeof loseSession>[1]) => loseSession(ctx, session)
    const { leaseMs, renewMs } = timing
    const leases = startLeaseKeeper({ held, store, leaseMs, renewMs, logger, onLost })
    const intake = startIntake(ctx, leases)
    const autoRuns = startAutoRuns(ctx, timing.autoRunMs)
    const consumer = await ctx.sessionQueue.consume(({ session_id }) => intake.offer(session_id), {
      prefetch: Math.min(config.concurrency, MAX_PREFETCH),
    })
    logger.info({ port: http.port, places: config.concurrency }, 'running')
    const stop = async (): Promise<void> => {
      // First nothing new, then the runs under way to their next step boundary, their leases kept alive until then.
      const stopping = [intake.stop(), autoRuns.stop(), consumer.close()]
      held.interruptAll()
      await Promise.all(stopping)
      await settle(ctx, intake)
      await leases.stop()
      await http.close(0)
      await ctx.dispose()
    }
    let stopped: Promise<void> | undefined
    return { logger, port: http.port, stop: () => (stopped ??= stop()) }
  } catch (error) {
    await ctx.dispose()
    throw error
  }
}

async function settle({ held, timing, logger }: AppContext, intake: Intake): Promise<void> {
  const timer = setTimeout(() => {
    logger.warn({ sessions: held.size }, 'steps under way took too long and are given up')
    held.abortAll()
  }, timing.graceMs)
  await intake.settle()
  clearTimeout(timer)
}

function createApp({ db, sessionQueue, metrics, logger }: AppContext): express.Express {
  const app = express()
  app.disable('x-powered-by')
  app.use(assignRequestId)
  app.use(healthRoutes({ metrics, checks: { postgres: () => db.ping(), rabbitmq: () => sessionQueue.ping() } }))
  app.use(handleNotFound)
  app.use(handleErrors(logger))
  return app
}
