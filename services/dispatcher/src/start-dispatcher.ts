import { setTimeout as sleep } from 'node:timers/promises'
import { type RunningService, startHttpServer } from '@workflow-service/service-kit'
import { createApp } from './app.ts'
import { type AppContext, createAppContext, type DispatcherOverrides } from './app-context.ts'
import type { DispatcherConfig } from './config.ts'
import { startMaintenance } from './maintenance.ts'

/** A dispatcher that listens. */
export interface RunningDispatcher extends RunningService {
  /** The address of its API as seen from this machine, without a slash at the end. */
  readonly url: string
  readonly port: number
}

/** A stop waits for the requests in flight: 30 s for a payload request, and 1 s to record and answer. */
const STOP_GRACE_MS = 31_000
const DRAIN_MS = 3_000

/** Starts the dispatcher. Rejects if it cannot listen. Does not need the database to be available yet. */
export async function startDispatcher(
  config: DispatcherConfig,
  overrides: DispatcherOverrides = {},
): Promise<RunningDispatcher> {
  const ctx = await createAppContext(config, overrides)
  try {
    let isStopping = false
    const http = await startHttpServer(createApp(ctx, { isStopping: () => isStopping }), {
      host: config.host,
      port: config.port,
      onRefusal: (error, requestId) =>
        ctx.logger.info({ request_id: requestId, code: error.code, reason: error.message }, 'request.refused'),
    })
    const maintenance = startMaintenance(ctx)
    ctx.logger.info({ url: http.url }, 'service.started')
    logAddressExemptions(ctx)
    return {
      logger: ctx.logger,
      shutdownDelayMs: config.shutdownDelayMs,
      url: http.url,
      port: http.port,
      stop: async () => {
        isStopping = true
        http.drain()
        await sleep(config.shutdownDelayMs)
        // Calls that wait for a slot could still send for 30 s; their callers repeat them at another dispatcher.
        ctx.limiter.stopWaiting()
        await maintenance.stop()
        await http.close(STOP_GRACE_MS)
        await ctx.outcomes.drain(DRAIN_MS)
        await ctx.dispose()
      },
    }
  } catch (error) {
    await ctx.dispose()
    throw error
  }
}

function logAddressExemptions({ config, logger }: AppContext): void {
  const { cidrs } = config.allowedSubnets
  if (cidrs.length > 0) {
    logger.warn(
      { allowed_subnets: cidrs, hint: 'WEBHOOK_ALLOWED_SUBNETS is for development only' },
      'address_check.exempted',
    )
  }
  if (config.egressProxy) logger.info('address_check.delegated')
}
