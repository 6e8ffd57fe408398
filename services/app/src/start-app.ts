import {
  PUBLIC_KEEP_ALIVE_MS,
  type RunningService,
  startMaintenance,
  startService,
} from '@workflow-service/service-kit'
import { createApp } from './app.ts'
import { type AppOverrides, createAppServiceContext } from './app-service-context.ts'
import type { AppConfig } from './config.ts'
import { MAINTENANCE } from './maintenance.ts'

/** A verification takes 10 s; a resend that takes longer is recorded by the dispatcher. */
const STOP_GRACE_MS = 12_000

/** Starts the application. Rejects when it cannot listen; it does not wait for the database or RabbitMQ. */
export async function startApp(config: AppConfig, overrides: AppOverrides = {}): Promise<RunningService> {
  const ctx = await createAppServiceContext(config, overrides)
  return await startService(ctx, {
    createApp: () => createApp(ctx),
    startWork: () => (overrides.hasMaintenance === false ? undefined : startMaintenance(ctx, MAINTENANCE)),
    checks: { postgres: () => ctx.db.ping() },
    // Starts are recorded without the broker too, and the runners' sweep finds them.
    optionalChecks: { rabbitmq: () => ctx.sessionQueue.ping() },
    keepAliveTimeoutMs: PUBLIC_KEEP_ALIVE_MS,
    stopGraceMs: STOP_GRACE_MS,
  })
}
