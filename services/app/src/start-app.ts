import { createMetricsApp, type HttpServer, type RunningService, startHttpServer } from '@workflow-service/service-kit'
import { createApp } from './app.ts'
import { type AppOverrides, createAppContext } from './app-context.ts'
import type { AppConfig } from './config.ts'
import { startMaintenance } from './maintenance.ts'

/** An application that listens. */
export interface RunningApp extends RunningService {
  /** Where the application is, as seen from this machine; without a slash at the end. */
  readonly url: string
  readonly port: number
  readonly metricsPort: number
}

/** A verification takes 10 s; a resend that takes longer is recorded by the dispatcher. */
const STOP_GRACE_MS = 12_000

/** Starts the application. Rejects when it cannot listen; it does not wait for the database or RabbitMQ. */
export async function startApp(config: AppConfig, overrides: AppOverrides = {}): Promise<RunningApp> {
  const ctx = createAppContext(config, overrides)
  const { logger } = ctx
  const servers: HttpServer[] = []
  try {
    const http = await startHttpServer(createApp(ctx), {
      host: config.host,
      port: config.port,
      onRefusal: (error, requestId) =>
        logger.info({ request_id: requestId, code: error.code, reason: error.message }, 'request.refused'),
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
    const maintenance = overrides.hasMaintenance === false ? undefined : startMaintenance(ctx)
    logger.info({ url: http.url, metrics_port: metricsHttp.port }, 'listening')
    const stop = async (): Promise<void> => {
      await Promise.all([maintenance?.stop(), http.close(STOP_GRACE_MS)])
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
