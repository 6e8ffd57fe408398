import { type RunningService, startMaintenance, startService } from '@workflow-service/service-kit'
import { createApp } from './app.ts'
import { type AppOverrides, createAppServiceContext } from './app-service-context.ts'
import type { AppConfig } from './config.ts'
import { MAINTENANCE } from './maintenance.ts'

/** A verification takes 10 s; a resend that takes longer is recorded by the dispatcher. */
const STOP_GRACE_MS = 12_000
/** For a PDF of 3 MiB, 4 MiB in base64, at 0.6 Mbit/s: most proxies pass it on as slowly as it comes. */
const REQUEST_TIMEOUT_MS = 60_000

/** Starts the application. Rejects when it cannot listen; it does not wait for the database or RabbitMQ. */
export async function startApp(config: AppConfig, overrides: AppOverrides = {}): Promise<RunningService> {
  const ctx = await createAppServiceContext(config, overrides)
  return await startService(ctx, {
    createApp: () => createApp(ctx),
    startWork: () => (overrides.hasMaintenance === false ? undefined : startMaintenance(ctx, MAINTENANCE)),
    checks: { postgres: () => ctx.db.ping() },
    // Starts are recorded without the broker too, and the runners' sweep finds them.
    optionalChecks: { rabbitmq: () => ctx.sessionQueue.ping() },
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
    stopGraceMs: STOP_GRACE_MS,
  })
}
