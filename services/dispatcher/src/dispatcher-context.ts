import { createChangeNotifier, createDatabase, createSecretBox, type SqlDatabase } from '@workflow-service/database'
import { createKeyedMutex, createServiceParts, InFlightLimiter, type Logger } from '@workflow-service/service-kit'
import type { DispatcherConfig } from './config.ts'
import { DELIVERY_DEADLINE_MS } from './deliveries/deadlines.ts'
import { createDeliveryStore } from './deliveries/delivery-store.ts'
import { createFirstArrivals } from './deliveries/first-arrivals.ts'
import { createOutcomeRecorder } from './deliveries/outcome-recorder.ts'
import { createDeliveryMetrics } from './metrics.ts'
import { createSendRequest, type SendRequest } from './outbound/send-request.ts'

/**
 * With the 30 s of a payload request and the time to claim it, the response comes within the 60 s for which the runner
 * waits.
 */
const SLOT_WAIT_MS = 20_000

/** How long a save waits for its turn. The saves of one organization wait for each other's quota. */
const SAVING_WAIT_MS = 5_000

/** The time for outcomes that could not be recorded yet. */
const DRAIN_MS = 3_000

/** Each waiting call keeps its payload (256 KiB) in memory. A call beyond the limit is answered 503 at once. */
const MAX_WAITING = 1_000
const MAX_WAITING_PER_SOURCE = 200

/** Replacements for parts of the context, for tests and for a caller in the same process. */
export interface DispatcherOverrides {
  logger?: Logger
  sendRequest?: SendRequest
  /** How long a payload waits for a slot. Default 20,000. */
  slotWaitMs?: number
  /** Age at which a delivery without an outcome becomes `unknown`. Default 40,000. */
  deliveryDeadlineMs?: number
}

/** Creates the context. Does not connect to the database: the first query does. */
export async function createDispatcherContext(config: DispatcherConfig, overrides: DispatcherOverrides = {}) {
  const parts = await createServiceParts('dispatcher', config, overrides.logger)
  const { logger, metrics, tracing } = parts
  const db: SqlDatabase = createDatabase(parts.database)
  const slotWaitMs = overrides.slotWaitMs ?? SLOT_WAIT_MS
  const limiter = new InFlightLimiter({
    total: config.maxInFlight,
    perKey: config.maxInFlightPerSource,
    waitMs: slotWaitMs,
    maxWaiting: MAX_WAITING,
    maxWaitingPerKey: MAX_WAITING_PER_SOURCE,
  })
  const savingTurns = new InFlightLimiter({
    total: Math.ceil(config.databasePoolSize / 4),
    perKey: 2,
    waitMs: SAVING_WAIT_MS,
    maxWaiting: MAX_WAITING,
    maxWaitingPerKey: MAX_WAITING / 2,
  })
  const store = createDeliveryStore(db)
  const changeNotices = createChangeNotifier({ db, onError: parts.onNoticeError })
  const outcomes = createOutcomeRecorder({ store, logger })
  return {
    config,
    logger,
    db,
    /** Tells the application what changed. */
    changeNotices,
    store,
    secrets: createSecretBox(config.secretsKeys),
    sendRequest:
      overrides.sendRequest ??
      createSendRequest({ allowedSubnets: config.allowedSubnets, egressProxy: config.egressProxy }),
    /** Limits the requests to endpoints that are in flight. */
    limiter,
    /** By the monotonic clock, when a process that stops ends to send payloads. */
    sending: { endsMs: Number.POSITIVE_INFINITY },
    /** The database work of saves and tests of webhook sources (`inTurn`). */
    savingTurns,
    /**
     * When the calls that got no slot in time first arrived: the same delivery keeps its place when it is asked for
     * again.
     */
    firstArrivals: createFirstArrivals(),
    /** How long a payload waits for a slot, from the arrival of its call. */
    slotWaitMs,
    /** Runs the calls for one delivery id one after the other. */
    runExclusive: createKeyedMutex(),
    deliveryDeadlineMs: overrides.deliveryDeadlineMs ?? DELIVERY_DEADLINE_MS,
    outcomes,
    metrics,
    tracing,
    deliveryMetrics: createDeliveryMetrics(metrics, {
      inFlight: () => limiter.inFlight,
      waiting: () => limiter.waiting,
      unrecorded: () => outcomes.size,
    }),
    /** Records the outcomes that are still in memory, and closes every connection. */
    close: async () => {
      await outcomes.drain(DRAIN_MS)
      outcomes.stop()
      await changeNotices.close()
      await tracing.stop()
      await db.close()
    },
  }
}

/** Everything that the dispatcher's functions use. */
export type DispatcherContext = Awaited<ReturnType<typeof createDispatcherContext>>
