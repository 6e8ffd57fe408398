import { deleteOldIdempotencyKeys } from '@workflow-service/database'
import {
  createMetricsApp,
  type HttpServer,
  repeat,
  type RunningService,
  startHttpServer,
} from '@workflow-service/service-kit'
import { createApp } from './app.ts'
import { createAppContext, type GatewayOverrides } from './app-context.ts'
import type { GatewayConfig } from './config.ts'

export type { GatewayOverrides } from './app-context.ts'

/** A gateway that listens. */
export interface RunningGateway extends RunningService {
  /** Where the public API is, as seen from this machine; without a slash at the end. */
  readonly url: string
  readonly port: number
  readonly metricsPort: number
}

const STOP_GRACE_MS = 10_000
const DELETE_KEYS_INTERVAL_MS = 60_000
const DELETE_KEYS_BATCH_SIZE = 10_000

/** Starts the gateway. Rejects when it cannot listen; it does not wait for the database or RabbitMQ. */
export async function startGateway(config: GatewayConfig, overrides: GatewayOverrides = {}): Promise<RunningGateway> {
  const ctx = createAppContext(config, overrides)
  const { db, gatewayMetrics, logger } = ctx
  const servers: HttpServer[] = []
  try {
    const http = await startHttpServer(createApp(ctx), {
      host: config.host,
      port: config.port,
      onRefusal: (error, requestId) => {
        gatewayMetrics.refusals.inc({ code: error.code })
        logger.info({ request_id: requestId, code: error.code, reason: error.message }, 'request.refused')
      },
    })
    servers.push(http)
    const metricsApp = createMetricsApp({
      metrics: ctx.metrics,
      checks: { postgres: () => ctx.db.ping() },
      // The service works without the broker: starts are recorded, and the runners' sweep finds them.
      optionalChecks: { rabbitmq: () => ctx.sessionQueue.ping() },
    })
    const metricsHttp = await startHttpServer(metricsApp, { host: config.host, port: config.metricsPort })
    servers.push(metricsHttp)
    const deletingKeys = repeat({
      name: 'delete old idempotency keys',
      intervalMs: DELETE_KEYS_INTERVAL_MS,
      firstDelayMs: DELETE_KEYS_INTERVAL_MS,
      logger,
      run: () => deleteOldIdempotencyKeys(db, DELETE_KEYS_BATCH_SIZE),
    })
    logger.info({ url: http.url, metrics_port: metricsHttp.port }, 'listening')
    const stop = async (): Promise<void> => {
      // Together: a statement under way must not keep the port open.
      await Promise.all([deletingKeys.stop(), http.close(STOP_GRACE_MS)])
      await ctx.close()
      await metricsHttp.close(0)
    }
    let stopping: Promise<void> | undefined
    return {
      logger,
      url: http.url,
      port: http.port,
      metricsPort: metricsHttp.port,
      stop: () => (stopping ??= stop()),
    }
  } catch (error) {
    for (const server of servers) await server.close(0)
    await ctx.close()
    throw error
  }
}
