import { randomUUID } from 'node:crypto'
import {
  createChangeNotifier,
  createDatabase,
  isGaugeReporter,
  measureBacklog,
  type SqlDatabase,
  stopReportingGauges,
} from '@workflow-service/database'
import { createSessionNotifier, openSessionQueue, type ServiceOverrides } from '@workflow-service/messaging'
import {
  createServiceParts,
  describeError,
  InFlightLimiter,
  registerSystemMetrics,
  withTimeout,
} from '@workflow-service/service-kit'
import { createApiKeyCache } from './auth/api-key-cache.ts'
import { createApiKeyUsage } from './auth/api-key-usage.ts'
import type { GatewayConfig } from './config.ts'
import { createGatewayMetrics } from './gateway-metrics.ts'
import { createRateLimits } from './rate-limit/rate-limits.ts'
import { createRunWaits } from './runs/run-waits.ts'
import { createStartRecorder } from './starts/start-recorder.ts'
import { createWorkflowDocuments } from './workflows/workflow-documents.ts'

/** Less than the handler's timeout: a list that was answered 503 while it waited is never read. */
export const LIST_WAIT_MS = 2_500

/** Pages of one organization that are read or sent at once. */
const PAGES_PER_ORGANIZATION = 4

/** The time for the last statement of a gateway that stops. */
const CLOSE_MS = 1_000

/** Never fails: a database or a broker that is unavailable fails the requests that need it. */
export async function createGatewayContext(config: GatewayConfig, overrides: ServiceOverrides = {}) {
  const parts = await createServiceParts('gateway', config, overrides.logger)
  const { logger, metrics, tracing } = parts
  const db: SqlDatabase = createDatabase(parts.database)
  const runWaits = createRunWaits(db, logger)
  const gatewayMetrics = createGatewayMetrics(metrics, () => runWaits.size)
  const sessionQueue = openSessionQueue(overrides, {
    url: config.amqpUrl,
    queueType: config.amqpQueueType,
    connectionName: 'gateway',
    logger,
    onState: (_role, state) => gatewayMetrics.brokerUp.set(state === 'up' ? 1 : 0),
  })
  const owner = randomUUID()
  registerSystemMetrics(metrics, {
    isReporter: () => isGaugeReporter(db, owner),
    backlog: () => measureBacklog(db),
    queueDepth: () => sessionQueue.depth(),
  })
  const changeNotices = createChangeNotifier({ db, onError: parts.onNoticeError })
  const apiKeyUsage = createApiKeyUsage(db)
  const rateLimits = createRateLimits({ config, logger, metrics: gatewayMetrics })
  const sessionNotifier = createSessionNotifier({
    sessionQueue,
    tracing,
    onOutcome: (outcome) => gatewayMetrics.sessionMessages.inc({ outcome }),
  })
  const { maxRequestsInFlight } = config
  const waiting = { waitMs: LIST_WAIT_MS, maxWaiting: maxRequestsInFlight, maxWaitingPerKey: maxRequestsInFlight }
  return {
    config,
    logger,
    db,
    /** Tells the application what changed. */
    changeNotices,
    sessionQueue,
    apiKeys: createApiKeyCache({ db, onLookUp: (count) => gatewayMetrics.apiKeyLookUps.inc(count) }),
    apiKeyUsage,
    rateLimits,
    /** The requests that wait for the end of a run. */
    runWaits,
    starts: createStartRecorder(db, gatewayMetrics),
    sessionNotifier,
    workflows: createWorkflowDocuments({
      db,
      onRead: (from, count) => gatewayMetrics.workflowDocuments.inc({ from }, count),
    }),
    // Slots of the lists and searches that use the database, by organization.
    // A page takes up to 2 MiB and a search may read all workflows of its organization. These shares leave connections
    // and processors of the database to single reads and starts, and lists to other organizations.
    listSlots: new InFlightLimiter({
      total: Math.max(1, Math.floor(config.databasePoolSize / 2)),
      perKey: Math.max(1, Math.floor(config.databasePoolSize / 5)),
      ...waiting,
    }),
    // Slots of the lists of an organization until their responses have been sent.
    // Sending a page takes as much of the process as reading it: 40 at once delayed the requests of others by 100 ms.
    // Callers that read their pages slowly take slots of their own organization only.
    pageSlots: new InFlightLimiter({
      total: Infinity,
      perKey: PAGES_PER_ORGANIZATION,
      ...waiting,
    }),
    metrics,
    gatewayMetrics,
    tracing,
    /** Closes every connection and writes what is still pending. */
    close: async () => {
      await sessionNotifier.close()
      await sessionQueue.close()
      rateLimits.close()
      await apiKeyUsage.write().catch((error: unknown) => {
        logger.warn({ task: 'write when API keys were last used', error: describeError(error) }, 'task.failed')
      })
      await changeNotices.close()
      await tracing.stop()
      await withTimeout(stopReportingGauges(db, owner), CLOSE_MS).catch(() => {})
      await db.close()
    },
  }
}

/** Everything that the gateway's routes use. */
export type GatewayContext = Awaited<ReturnType<typeof createGatewayContext>>
