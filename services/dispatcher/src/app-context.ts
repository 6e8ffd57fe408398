import { createDatabase, createSecretBox, type Database, type SecretBox } from '@workflow-service/database'
import { createLogger, createMetrics, describeError, type Logger, type Registry } from '@workflow-service/service-kit'
import type { DispatcherConfig } from './config.ts'
import { createDeliveryMetrics, type DeliveryMetrics } from './delivery-metrics.ts'
import { createDeliveryStore, type DeliveryStore } from './delivery-store.ts'
import { createInTurn, type InTurn } from './in-turn.ts'
import { createSendRequest, type SendRequest } from './outbound/send-request.ts'
import { createOutcomeRecorder, type OutcomeRecorder } from './outcome-recorder.ts'
import { createPlaces, type Places } from './places.ts'

/** All that the dispatcher's code may touch. */
export interface AppContext {
  readonly config: DispatcherConfig
  readonly logger: Logger
  readonly db: Database
  readonly store: DeliveryStore
  readonly secrets: SecretBox
  readonly sendRequest: SendRequest
  /** How many requests may be open at once. */
  readonly places: Places
  /** Calls for one delivery follow each other. */
  readonly inTurn: InTurn
  readonly outcomes: OutcomeRecorder
  readonly metrics: Registry
  readonly deliveryMetrics: DeliveryMetrics
  dispose(): Promise<void>
}

/** What a caller in the same process, or a test, may put in place. */
export interface DispatcherOverrides {
  logger?: Logger
  sendRequest?: SendRequest
  /** How long a delivery waits for a place. Default 5,000. */
  placeWaitMs?: number
}

/** Opens nothing that can fail: a database that is away is noticed by the first who asks it. */
export function createAppContext(config: DispatcherConfig, overrides: DispatcherOverrides = {}): AppContext {
  const logger = overrides.logger ?? createLogger({ service: 'dispatcher', level: config.logLevel })
  const secrets = createSecretBox(config.secretsKeys)
  const db = createDatabase({
    url: config.databaseUrl,
    applicationName: 'dispatcher',
    maxConnections: config.databasePoolSize,
    onError: (error) => logger.warn({ error: describeError(error) }, 'a database connection broke'),
  })
  const metrics = createMetrics('dispatcher')
  const places = createPlaces({
    total: config.maxInFlight,
    perKey: config.maxInFlightPerSource,
    waitMs: overrides.placeWaitMs ?? 5_000,
  })
  const store = createDeliveryStore(db)
  const outcomes = createOutcomeRecorder({ store, logger })
  return {
    config,
    logger,
    db,
    store,
    secrets,
    sendRequest:
      overrides.sendRequest ??
      createSendRequest({ allowedSubnets: config.allowedSubnets, egressProxy: config.egressProxy }),
    places,
    inTurn: createInTurn(),
    outcomes,
    metrics,
    deliveryMetrics: createDeliveryMetrics(metrics, {
      inFlight: () => places.taken,
      waiting: () => places.waiting,
      unrecorded: () => outcomes.size,
    }),
    dispose: async () => {
      outcomes.stop()
      await db.close()
    },
  }
}
