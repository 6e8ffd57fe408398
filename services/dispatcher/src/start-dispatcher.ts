import { type RunningService, startMaintenance, startService } from '@workflow-service/service-kit'
import { createApp } from './app.ts'
import type { DispatcherConfig } from './config.ts'
import { SEND_AFTER_STOP_MS, STOP_GRACE_MS } from './deliveries/deadlines.ts'
import { createDispatcherContext, type DispatcherContext, type DispatcherOverrides } from './dispatcher-context.ts'
import { createLocalCalls, type LocalCalls } from './local-calls.ts'
import { MAINTENANCE } from './maintenance.ts'

/** A dispatcher that also takes the payloads of a runner in its process. */
export interface RunningDispatcher extends RunningService {
  /** Operations without HTTP. They never reject. */
  readonly local: Pick<LocalCalls, 'sendPayload' | 'callLookup'>
}

/** Starts the dispatcher. Rejects if it cannot listen. Does not need the database to be available yet. */
export async function startDispatcher(
  config: DispatcherConfig,
  overrides: DispatcherOverrides = {},
): Promise<RunningDispatcher> {
  const ctx = await createDispatcherContext(config, overrides)
  const localCalls = createLocalCalls(ctx)
  const service = await startService(ctx, {
    createApp: (health) => createApp(ctx, health),
    startWork: () => {
      const maintenance = startMaintenance(ctx, MAINTENANCE)
      return {
        stop: async () => {
          // Calls that wait for a slot could still send for 30 s; their callers repeat them at another dispatcher.
          ctx.limiter.stopWaiting()
          ctx.sending.endsMs = performance.now() + SEND_AFTER_STOP_MS
          await Promise.all([maintenance.stop(), localCalls.stop(STOP_GRACE_MS)])
        },
      }
    },
    checks: { postgres: () => ctx.db.ping() },
    stopGraceMs: STOP_GRACE_MS,
  })
  logAddressExemptions(ctx)
  return { ...service, local: localCalls }
}

function logAddressExemptions({ config, logger }: DispatcherContext): void {
  const { cidrs } = config.allowedSubnets
  if (cidrs.length > 0) {
    logger.warn(
      { allowed_subnets: cidrs, hint: 'WEBHOOK_ALLOWED_SUBNETS is for development only' },
      'address_check.exempted',
    )
  }
  if (config.egressProxy) logger.info('address_check.delegated')
}
