import { setTimeout as sleep } from 'node:timers/promises'
import { createChangeNotifier, createDatabase } from '@workflow-service/database'
import { createSessionNotifier, openSessionQueue, type ServiceOverrides } from '@workflow-service/messaging'
import { createServiceParts, createTurns } from '@workflow-service/service-kit'
import { createLimiter, createSignInLimits } from './auth/sign-in-limits.ts'
import type { AppConfig } from './config.ts'
import { createEventStreams } from './event-stream.ts'
import { createDispatcherClient } from './dispatcher-client.ts'
import { ENDPOINT_QUOTA } from './endpoint-quota.ts'
import { ADDRESS_QUOTA, MAIL_QUOTA } from './mail-quota.ts'
import { createOperationShares } from './operation-shares.ts'

export interface AppOverrides extends ServiceOverrides {
  /** Whether this process runs the background tasks. Default true. */
  hasMaintenance?: boolean
}

/** Never fails: a database or a broker that is unavailable fails the requests that need it. */
export async function createAppServiceContext(config: AppConfig, overrides: AppOverrides = {}) {
  const parts = await createServiceParts('app', config, overrides.logger)
  const { logger, metrics, tracing } = parts
  const db = createDatabase(parts.database)
  const sessionQueue = openSessionQueue(overrides, {
    url: config.amqpUrl,
    queueType: config.amqpQueueType,
    connectionName: 'app',
    logger,
  })
  const sessionNotifier = createSessionNotifier({ sessionQueue, tracing })
  const limitStore = { url: config.rateLimitStoreUrl, logger }
  const signInLimits = createSignInLimits(limitStore)
  const mailLimiter = createLimiter(MAIL_QUOTA, limitStore)
  const addressLimiter = createLimiter(ADDRESS_QUOTA, limitStore)
  const endpointLimiter = createLimiter(ENDPOINT_QUOTA, limitStore)
  const changeNotices = createChangeNotifier({ db, onError: parts.onNoticeError })
  const eventStreams = createEventStreams({ db, databaseUrl: config.databaseUrl, logger })
  return {
    config,
    logger,
    db,
    metrics,
    tracing,
    sessionQueue,
    sessionNotifier,
    dispatcher: createDispatcherClient({ url: config.dispatcherUrl, token: config.internalApiToken, tracing }),
    signInLimits,
    /** Counts emails of an organization by address, and tests of them. */
    mailLimiter,
    /** Counts emails of all organizations by address. */
    addressLimiter,
    /** Counts verifications and tests by organization (`countEndpointRequest`). */
    endpointLimiter,
    /** Of the requests that are answered at once. */
    shares: createOperationShares(config),
    /** Between pieces of 2 ms of the checks of an organization's rules: together half of the process's time. */
    waitForTurn: createTurns(() => sleep(2)),
    /** What changed, for the pages that are open. */
    changeNotices,
    /** The pages that are open, which hear the notices of all processes. */
    eventStreams,
    /** Closes every connection and sends what is still pending. */
    close: async () => {
      await sessionNotifier.close()
      await sessionQueue.close()
      await eventStreams.close()
      signInLimits.close()
      mailLimiter.close()
      addressLimiter.close()
      endpointLimiter.close()
      await changeNotices.close()
      await tracing.stop()
      await db.close()
    },
  }
}

/** Everything that the application's routes use. */
export type AppServiceContext = Awaited<ReturnType<typeof createAppServiceContext>>
