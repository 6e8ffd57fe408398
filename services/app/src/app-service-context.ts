import { createDatabase, createChangeNotifier, type Database, type ChangeNotifier } from '@workflow-service/database'
import {
  connectRabbitMq,
  createSessionNotifier,
  type SessionNotifier,
  type SessionQueue,
} from '@workflow-service/messaging'
import { createServiceParts, type Logger, type Registry, type Tracing } from '@workflow-service/service-kit'
import { createSignInLimits, type SignInLimits } from './auth/sign-in-limits.ts'
import type { AppConfig } from './config.ts'
import { createEventStreams, type EventStreams } from './event-stream.ts'
import { createDispatcherClient, type DispatcherClient } from './dispatcher-client.ts'

/** Everything that the application's routes use. */
export interface AppServiceContext {
  readonly config: AppConfig
  readonly logger: Logger
  readonly db: Database
  readonly metrics: Registry
  readonly tracing: Tracing
  readonly sessionQueue: SessionQueue
  readonly sessionNotifier: SessionNotifier
  readonly dispatcher: DispatcherClient
  readonly signInLimits: SignInLimits
  /** What changed, for the pages that are open. */
  readonly hints: ChangeNotifier
  /** The pages that are open, which hear the hints of all processes. */
  readonly eventStreams: EventStreams
  /** Closes every connection and sends what is still pending. */
  close(): Promise<void>
}

/** Parts that a test, or a program that runs all services in one process, provides itself. */
export interface AppOverrides {
  /** The caller closes it. */
  sessionQueue?: SessionQueue
  logger?: Logger
  /** Whether this process runs the background tasks. Default true. */
  hasMaintenance?: boolean
}

/** Never fails: a database or a broker that is unavailable fails the requests that need it. */
export async function createAppServiceContext(
  config: AppConfig,
  overrides: AppOverrides = {},
): Promise<AppServiceContext> {
  const parts = await createServiceParts('app', config, overrides.logger)
  const { logger, metrics, tracing } = parts
  const db = createDatabase(parts.database)
  const sessionQueue =
    overrides.sessionQueue ??
    connectRabbitMq({ url: config.amqpUrl, queueType: config.amqpQueueType, connectionName: 'app', logger })
  const sessionNotifier = createSessionNotifier({ sessionQueue, tracing })
  const signInLimits = createSignInLimits({ url: config.rateLimitStoreUrl, logger })
  const hints = createChangeNotifier({ db, onError: parts.onHintError })
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
    hints,
    eventStreams,
    close: async () => {
      await sessionNotifier.close()
      if (!overrides.sessionQueue) await sessionQueue.close()
      await eventStreams.close()
      signInLimits.close()
      await hints.close()
      await tracing.stop()
      await db.close()
    },
  }
}
