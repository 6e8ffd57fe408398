import { setTimeout as sleep } from 'node:timers/promises'
import type { Express } from 'express'
import type { ApiError } from './http/errors.ts'
import { createHealthApp, type HealthOptions } from './http/health.ts'
import { type HttpServer, startHttpServer } from './http/server.ts'
import type { Logger } from './logger.ts'
import type { Registry } from './metrics.ts'
import type { TrustProxy } from './trust-proxy.ts'

/** A service that runs until it is stopped. */
export interface RunningService {
  readonly logger: Logger
  /** How long `stop` keeps serving requests, with `/readyz` failing, before it closes the listener. */
  readonly shutdownDelayMs: number
  /** Its address as seen from this machine, without a slash at the end. */
  readonly url: string
  readonly port: number
  /** The port of `/readyz` and `/metrics`. */
  readonly metricsPort: number
  /**
   * Finishes the work under way and closes every resource; the event loop empties afterwards. Further calls wait for
   * the first.
   */
  stop(): Promise<void>
}

/** What a service shares among its parts. */
export interface ServiceContext {
  readonly config: {
    readonly host: string
    readonly port: number
    /** The setting that has the port. Default: `PORT`. */
    readonly portSetting?: string
    /** The port of the health routes, if they have one of their own. */
    readonly metricsPort?: number
    /** Default 0, for a service to which no load balancer sends requests. */
    readonly shutdownDelayMs?: number
    readonly trustProxy?: TrustProxy
  }
  readonly logger: Logger
  readonly metrics: Registry
  /** Sends or writes what is still pending, and closes every connection. */
  close(): Promise<void>
}

/**
 * How long a service behind a proxy keeps an unused connection: longer than most proxies do (nginx and AWS 60 s,
 * Traefik 90 s, Caddy 120 s), because a request that meets the end of its connection is answered 502 by them. Shorter
 * than balancers of connections, which drop them in silence (Azure 240 s, AWS 350 s). Without a proxy, strangers could
 * keep as many.
 */
const BEHIND_PROXY_MS = 125_000

/** Background tasks and consumers. */
export interface ServiceWork {
  /** Takes nothing new from its first moment, and resolves when what is under way has ended. */
  stop(): Promise<void>
}

export interface ServiceOptions extends Pick<HealthOptions, 'checks' | 'optionalChecks'> {
  /**
   * Creates the API. It serves the health routes itself if they have no port of their own. Default: the health routes
   * alone.
   */
  readonly createApp?: (health: HealthOptions) => Express
  /** Starts the background work, once the servers listen. */
  readonly startWork?: () => ServiceWork | Promise<ServiceWork> | undefined
  /** Called for each request that the server refuses before the application sees it; the refusal is logged. */
  readonly onRefusal?: (error: ApiError) => void
  /** How long a request to the API may take to arrive. Default 15,000. */
  readonly requestTimeoutMs?: number
  /** How long a stop waits for the requests in flight. Default 0. */
  readonly stopGraceMs?: number
  /** Further fields of the event `service.started`. */
  readonly startedFields?: object
}

/**
 * Starts a service. Rejects when it cannot listen, with the context closed; it does not wait for what the service
 * depends on.
 *
 * `stop` goes in this order: `/readyz` fails, and callers are asked to open a new connection; after the shutdown delay,
 * the API closes its port and waits for the requests in flight while the background work ends; then the context closes,
 * and the health routes last, if they have a port of their own.
 */
export async function startService(ctx: ServiceContext, options: ServiceOptions): Promise<RunningService> {
  const { checks, optionalChecks, createApp, startWork, onRefusal, stopGraceMs = 0 } = options
  const { host, port, portSetting, metricsPort, shutdownDelayMs = 0, trustProxy } = ctx.config
  const { logger, metrics } = ctx
  let isStopping = false
  const health: HealthOptions = { metrics, checks, optionalChecks, isStopping: () => isStopping, logger }
  const servers: HttpServer[] = []
  const listen = async (app: Express, ownPort: number, setting = portSetting): Promise<HttpServer> => {
    const server = await startHttpServer(app, {
      host,
      port: ownPort,
      portSetting: setting,
      keepAliveTimeoutMs: trustProxy ? BEHIND_PROXY_MS : undefined,
      requestTimeoutMs: options.requestTimeoutMs,
      onRefusal: (error, requestId) => {
        onRefusal?.(error)
        logger.info({ request_id: requestId, code: error.code, reason: error.message }, 'request.refused')
      },
    })
    servers.push(server)
    return server
  }
  try {
    const api = createApp && (await listen(createApp(health), port))
    const healthServer =
      metricsPort === undefined
        ? (api ?? (await listen(createHealthApp(health), port)))
        : await listen(createHealthApp(health), metricsPort, 'METRICS_PORT')
    const { url } = api ?? healthServer
    const work = await startWork?.()
    logger.info({ url, metrics_port: healthServer.port, ...options.startedFields }, 'service.started')
    const stop = async (): Promise<void> => {
      isStopping = true
      api?.drain()
      await sleep(shutdownDelayMs)
      // Together: a statement under way must not keep the port open.
      await Promise.all([work?.stop(), api?.close(stopGraceMs)])
      await ctx.close()
      await healthServer.close(0)
    }
    let stopping: Promise<void> | undefined
    return {
      logger,
      shutdownDelayMs,
      url,
      port: (api ?? healthServer).port,
      metricsPort: healthServer.port,
      stop: () => (stopping ??= stop()),
    }
  } catch (error) {
    for (const server of servers) await server.close(0)
    await ctx.close()
    throw error
  }
}
