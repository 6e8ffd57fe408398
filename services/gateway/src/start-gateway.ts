import { type RunningService, startMaintenance, startService } from '@workflow-service/service-kit'
import { createApp } from './app.ts'
import type { GatewayConfig } from './config.ts'
import { createGatewayContext } from './gateway-context.ts'
import type { ServiceOverrides } from '@workflow-service/messaging'
import { MAINTENANCE } from './maintenance.ts'

const STOP_GRACE_MS = 10_000

/** Starts the gateway. Rejects when it cannot listen; it does not wait for the database or RabbitMQ. */
export async function startGateway(config: GatewayConfig, overrides: ServiceOverrides = {}): Promise<RunningService> {
  const ctx = await createGatewayContext(config, overrides)
  return await startService(ctx, {
    createApp: () => createApp(ctx),
    startWork: () => {
      const maintenance = startMaintenance(ctx, MAINTENANCE)
      return {
        stop: async () => void (await Promise.all([ctx.runWaits.close(), maintenance.stop()])),
      }
    },
    checks: { postgres: () => ctx.db.ping() },
    // Starts are recorded without the broker too, and the runners' sweep finds them.
    optionalChecks: { rabbitmq: () => ctx.sessionQueue.ping() },
    onRefusal: ({ code }) => ctx.gatewayMetrics.refusals.inc({ code }),
    stopGraceMs: STOP_GRACE_MS,
  })
}
