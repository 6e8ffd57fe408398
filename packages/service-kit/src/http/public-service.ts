import { setTimeout as sleep } from 'node:timers/promises'
import express, { type Express } from 'express'
import type { Logger } from '../logger.ts'
import type { Registry } from '../metrics.ts'
import type { RunningService } from '../run-service.ts'
import type { TrustProxy } from '../trust-proxy.ts'
import type { ApiError } from './errors.ts'
import { createMetricsApp } from './health.ts'
import { type HttpServer, startHttpServer } from './server.ts'

/** A public service that listens. */
export interface RunningPublicService extends RunningService {
  /** Its address as seen from this machine, without a slash at the end. */
  readonly url: string
  readonly port: number
  readonly metricsPort: number
}

/** What a public service uses. */
export interface PublicServiceContext {
  readonly config: {
    readonly host: string
    readonly port: number
    readonly metricsPort: number
    readonly shutdownDelayMs: number
  }
  readonly logger: Logger
  readonly metrics: Registry
  readonly db: { ping(): Promise<void> }
  readonly sessionQueue: { ping(): Promise<void> }
  /** Closes every connection and sends what is still pending. */
  close(): Promise<void>
}

export interface PublicServiceOptions {
  readonly createApp: () => Express
  /** Starts the background tasks, once both servers listen. */
  readonly startTasks: () => { stop(): Promise<void> } | undefined
  /** Called for each request that the server refuses before the application sees it; the refusal is logged. */
  readonly onRefusal?: (error: ApiError) => void
  /** How long a stop waits for the requests in flight. */
  readonly stopGraceMs: number
}

/** Creates the application of a public service: exact paths, and no header that names the framework. */
export function createPublicApp({ trustProxy }: { readonly trustProxy: TrustProxy }): Express {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.set('query parser', false)
  app.set('case sensitive routing', true)
  app.set('strict routing', true)
  app.set('trust proxy', trustProxy)
  return app
}

/**
 * Starts a public API, and the operators' server on a port of its own. Rejects when it cannot listen, with the context closed; it does
 * not wait for the database or RabbitMQ.
 */
export async function startPublicService(
  ctx: PublicServiceContext,
  { createApp, startTasks, onRefusal, stopGraceMs }: PublicServiceOptions,
): Promise<RunningPublicService> {
  const { host, port, metricsPort, shutdownDelayMs } = ctx.config
  const { logger } = ctx
  const servers: HttpServer[] = []
  try {
    const http = await startHttpServer(createApp(), {
      host,
      port,
      onRefusal: (error, requestId) => {
        onRefusal?.(error)
        logger.info({ request_id: requestId, code: error.code, reason: error.message }, 'request.refused')
      },
    })
    servers.push(http)
    let isStopping = false
    const metricsApp = createMetricsApp({
      metrics: ctx.metrics,
      isStopping: () => isStopping,
      checks: { postgres: () => ctx.db.ping() },
      // The service works without the broker: starts are recorded, and the runners' sweep finds them.
      optionalChecks: { rabbitmq: () => ctx.sessionQueue.ping() },
    })
    const metricsHttp = await startHttpServer(metricsApp, { host, port: metricsPort })
    servers.push(metricsHttp)
    const tasks = startTasks()
    logger.info({ url: http.url, metrics_port: metricsHttp.port }, 'service.started')
    const stop = async (): Promise<void> => {
      isStopping = true
      http.drain()
      await sleep(shutdownDelayMs)
      // Together: a statement under way must not keep the port open.
      await Promise.all([tasks?.stop(), http.close(stopGraceMs)])
      await ctx.close()
      await metricsHttp.close(0)
    }
    let stopping: Promise<void> | undefined
    return {
      logger,
      shutdownDelayMs,
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
