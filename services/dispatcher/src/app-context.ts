import { createDatabase, createSecretBox, type Database, type SecretBox } from '@workflow-service/database'
import { createLogger, createMetrics, describeError, type Logger, type Registry } from '@workflow-service/service-kit'
import type { DispatcherConfig } from './config.ts'
import { DELIVERY_DEADLINE_MS } from './deliveries/deliver-payload.ts'
import { createDeliveryStore, type DeliveryStore } from './deliveries/delivery-store.ts'
import { createInFlightLimiter, type InFlightLimiter } from './deliveries/in-flight-limiter.ts'
import { createKeyedMutex, type KeyedMutex } from './deliveries/keyed-mutex.ts'
import { createOutcomeRecorder, type OutcomeRecorder } from './deliveries/outcome-recorder.ts'
import { createDeliveryMetrics, type DeliveryMetrics } from './metrics.ts'
import { createSendRequest, type SendRequest } from './outbound/send-request.ts'

/** Everything that the dispatcher's functions use. */
export interface AppContext {
  readonly config: DispatcherConfig
  readonly logger: Logger
  readonly db: Database
  readonly store: DeliveryStore
  readonly secrets: SecretBox
  readonly sendRequest: SendRequest
  /** Limits the requests to endpoints that are in flight. */
  readonly limiter: InFlightLimiter
  /** Runs the calls for one delivery id one after the other. */
  readonly deliveryMutex: KeyedMutex
  readonly deliveryDeadlineMs: number
  readonly outcomes: OutcomeRecorder
  readonly metrics: Registry
  readonly deliveryMetrics: DeliveryMetrics
  dispose(): Promise<void>
}

/** Replacements for parts of the context, for tests and for a caller in the same process. */
export interface DispatcherOverrides {
  logger?: Logger
  sendRequest?: SendRequest
  /** How long a delivery waits for a slot. Default 5,000. */
  slotWaitMs?: number
  /** Age at which a delivery without an outcome becomes `unknown`. Default 40,000. */
  deliveryDeadlineMs?: number
}

/** Creates the context. Does not connect to the database: the first query does. */
export function createAppContext(config: DispatcherConfig, overrides: DispatcherOverrides = {}): AppContext {
  const logger = overrides.logger ?? createLogger({ service: 'dispatcher', level: config.logLevel })
  const db = createDatabase({
    url: config.databaseUrl,
    applicationName: 'dispatcher',
    maxConnections: config.databasePoolSize,
    onError: (error) => logger.warn({ error: describeError(error) }, 'database connection lost'),
  })
  const metrics = createMetrics('dispatcher')
  const limiter = createInFlightLimiter({
    total: config.maxInFlight,
    perKey: config.maxInFlightPerSource,
    waitMs: overrides.slotWaitMs ?? 5_000,
  })
  const store = createDeliveryStore(db)
  const outcomes = createOutcomeRecorder({ store, logger })
  return {
    config,
    logger,
    db,
    store,
    secrets: createSecretBox(config.secretsKeys),
    sendRequest:
      overrides.sendRequest ??
      createSendRequest({ allowedSubnets: config.allowedSubnets, egressProxy: config.egressProxy }),
    limiter,
    deliveryMutex: createKeyedMutex(),
    deliveryDeadlineMs: overrides.deliveryDeadlineMs ?? DELIVERY_DEADLINE_MS,
    outcomes,
    metrics,
    deliveryMetrics: createDeliveryMetrics(metrics, {
      inFlight: () => limiter.inFlight,
      waiting: () => limiter.waiting,
      unrecorded: () => outcomes.size,
    }),
    dispose: async () => {
      outcomes.stop()
      await db.close()
    },
  }
}
