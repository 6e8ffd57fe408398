import { createDatabase, type Database } from '@workflow-service/database'
import { connectRabbitMq, type SessionQueue } from '@workflow-service/messaging'
import { createLogger, createMetrics, describeError, type Logger, type Registry } from '@workflow-service/service-kit'
import type { GatewayConfig } from './config.ts'
import { createGatewayMetrics, type GatewayMetrics } from './gateway-metrics.ts'
import { createKeyRing, type KeyRing } from './key-ring.ts'
import { createKeyUses, type KeyUses } from './key-uses.ts'
import { createRateLimits, type RateLimits } from './rate-limits.ts'
import { createStartRecorder, type StartRecorder } from './start-recorder.ts'
import { createWakeUps, type WakeUps } from './wake-ups.ts'
import { createWorkflowDocuments, type WorkflowDocuments } from './workflow-documents.ts'

/** All that the gateway's code may touch. */
export interface AppContext {
  readonly config: GatewayConfig
  readonly logger: Logger
  readonly db: Database
  readonly sessionQueue: SessionQueue
  readonly keys: KeyRing
  readonly keyUses: KeyUses
  readonly rateLimits: RateLimits
  readonly starts: StartRecorder
  readonly wakeUps: WakeUps
  readonly workflows: WorkflowDocuments
  readonly metrics: Registry
  readonly gatewayMetrics: GatewayMetrics
  dispose(): Promise<void>
}

/** What a caller in the same process, or a test, may put in place. */
export interface GatewayOverrides {
  /** Stays the caller's: it is not closed here. */
  sessionQueue?: SessionQueue
  logger?: Logger
}

/** Opens nothing that can fail: a database or a broker that is away is noticed by the first who asks it. */
export function createAppContext(config: GatewayConfig, overrides: GatewayOverrides = {}): AppContext {
  const logger = overrides.logger ?? createLogger({ service: 'gateway', level: config.logLevel })
  const metrics = createMetrics('gateway')
  const gatewayMetrics = createGatewayMetrics(metrics)
  const db = createDatabase({
    url: config.databaseUrl,
    applicationName: 'gateway',
    maxConnections: config.databasePoolSize,
    onError: (error) => logger.warn({ error: describeError(error) }, 'a database connection broke'),
  })
  const sessionQueue =
    overrides.sessionQueue ??
    connectRabbitMq({
      url: config.amqpUrl,
      queueType: config.amqpQueueType,
      connectionName: 'gateway',
      logger,
      onState: (_role, state) => gatewayMetrics.brokerUp.set(state === 'up' ? 1 : 0),
    })
  if (overrides.sessionQueue) gatewayMetrics.brokerUp.set(1)
  const keys = createKeyRing({ db, onLookUp: (count) => gatewayMetrics.keyLookUps.inc(count) })
  const keyUses = createKeyUses({ db, logger })
  const rateLimits = createRateLimits({ config, logger, metrics: gatewayMetrics })
  const wakeUps = createWakeUps({ sessionQueue, metrics: gatewayMetrics })
  return {
    config,
    logger,
    db,
    sessionQueue,
    keys,
    keyUses,
    rateLimits,
    starts: createStartRecorder({ db, metrics: gatewayMetrics }),
    wakeUps,
    workflows: createWorkflowDocuments({
      db,
      onAnswer: (from, count) => gatewayMetrics.workflowDocuments.inc({ from }, count),
    }),
    metrics,
    gatewayMetrics,
    dispose: async () => {
      await wakeUps.settle()
      if (!overrides.sessionQueue) await sessionQueue.close()
      await rateLimits.close()
      await keyUses.close()
      await db.close()
    },
  }
}
