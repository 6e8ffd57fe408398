import { deleteOldIdempotencyKeys } from '@workflow-service/database'
import { describeError, type HttpServer, type RunningService, startHttpServer } from '@workflow-service/service-kit'
import { createApp, createMetricsApp } from './app.ts'
import { type AppContext, createAppContext, type GatewayOverrides } from './app-context.ts'
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
const TIDY_INTERVAL_MS = 60_000
const TIDY_LIMIT = 10_000

/** Starts the gateway. Rejects when it cannot listen; a database or a broker that is away is waited for instead. */
export async function startGateway(config: GatewayConfig, overrides: GatewayOverrides = {}): Promise<RunningGateway> {
  const ctx = createAppContext(config, overrides)
  const servers: HttpServer[] = []
  try {
    const http = await startHttpServer(createApp(ctx), {
      host: config.host,
      port: config.port,
      maxRequestsInFlight: config.maxRequestsInFlight,
      onRefusal: (error, requestId) => {
        ctx.gatewayMetrics.refusals.inc({ code: error.code })
        ctx.logger.info({ request_id: requestId, code: error.code, reason: error.message }, 'request.refused')
      },
    })
    servers.push(http)
    const metricsHttp = await startHttpServer(createMetricsApp(ctx), { host: config.host, port: config.metricsPort })
    servers.push(metricsHttp)
    const tidying = setInterval(() => void tidy(ctx), TIDY_INTERVAL_MS)
    tidying.unref()
    const url = `http://${toReachableHost(config.host)}:${http.port}`
    ctx.logger.info({ url, metrics_port: metricsHttp.port }, 'listening')
    const stop = async (): Promise<void> => {
      clearInterval(tidying)
      await http.close(STOP_GRACE_MS)
      await ctx.dispose()
      await metricsHttp.close(0)
    }
    let stopping: Promise<void> | undefined
    return {
      logger: ctx.logger,
      url,
      port: http.port,
      metricsPort: metricsHttp.port,
      stop: () => (stopping ??= stop()),
    }
  } catch (error) {
    for (const server of servers) await server.close(0)
    await ctx.dispose()
    throw error
  }
}

async function tidy({ db, logger }: Pick<AppContext, 'db' | 'logger'>): Promise<void> {
  try {
    await deleteOldIdempotencyKeys(db, TIDY_LIMIT)
  } catch (error) {
    logger.warn({ error: describeError(error) }, 'could not delete old idempotency keys')
  }
}

function toReachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}
