import { deleteOldIdempotencyKeys } from '@workflow-service/database'
import { repeat, type RunningPublicService, startPublicService } from '@workflow-service/service-kit'
import { createApp } from './app.ts'
import { createAppContext, type GatewayOverrides } from './app-context.ts'
import type { GatewayConfig } from './config.ts'

export type { GatewayOverrides } from './app-context.ts'

const STOP_GRACE_MS = 10_000
const DELETE_KEYS_INTERVAL_MS = 60_000
const DELETE_KEYS_BATCH_SIZE = 2_000

/** Starts the gateway. Rejects when it cannot listen; it does not wait for the database or RabbitMQ. */
export async function startGateway(
  config: GatewayConfig,
  overrides: GatewayOverrides = {},
): Promise<RunningPublicService> {
  const ctx = await createAppContext(config, overrides)
  const { db, gatewayMetrics, logger } = ctx
  return await startPublicService(ctx, {
    createApp: () => createApp(ctx),
    startTasks: () =>
      repeat({
        name: 'delete old idempotency keys',
        intervalMs: DELETE_KEYS_INTERVAL_MS,
        firstDelayMs: DELETE_KEYS_INTERVAL_MS,
        logger,
        run: async (signal) => {
          while (
            !signal.aborted &&
            (await deleteOldIdempotencyKeys(db, DELETE_KEYS_BATCH_SIZE)) === DELETE_KEYS_BATCH_SIZE
          );
        },
      }),
    onRefusal: ({ code }) => gatewayMetrics.refusals.inc({ code }),
    stopGraceMs: STOP_GRACE_MS,
  })
}
