import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import {
  createDatabase,
  createChangeNotifier,
  createSecretBox,
  type SecretBox,
  type SqlDatabase,
  type ChangeNotifier,
  isGaugeReporter,
  measureBacklog,
  stopReportingGauges,
} from '@workflow-service/database'
import { connectRabbitMq, type SessionQueue } from '@workflow-service/messaging'
import {
  createServiceParts,
  type Logger,
  registerSystemMetrics,
  type Registry,
  withTimeout,
} from '@workflow-service/service-kit'
import type { Agent } from './agent/agent.ts'
import { createAgent } from './agent/create-agent.ts'
import type { RunnerConfig } from './config.ts'
import { createRunnerMetrics, recordModelAnswer } from './metrics.ts'
import { createDispatcherClient } from './runs/dispatcher-client.ts'
import { createDispatcherHttp } from './runs/dispatcher-http.ts'
import { createDispatcherInProcess, type LocalDispatcher } from './runs/dispatcher-in-process.ts'
import type { RunContext } from './runs/execute-run.ts'
import { createModelLimitGate } from './runs/model-limit-gate.ts'
import { createRunStore } from './runs/run-store.ts'
import { type ActiveSessions, createActiveSessions } from './sessions/active-sessions.ts'
import { createSessionStore, type SessionStore } from './sessions/session-store.ts'

/** The resources that the runner's code shares. */
export interface RunnerContext extends RunContext {
  readonly config: RunnerConfig
  readonly timing: RunnerTiming
  /** This runner's name in leases: unique per process start. */
  readonly owner: string
  readonly db: SqlDatabase
  /** Tells the application what changed. */
  readonly changeNotices: ChangeNotifier
  readonly sessionQueue: SessionQueue
  readonly activeSessions: ActiveSessions
  readonly sessionStore: SessionStore
  readonly metrics: Registry
  /** Decrypts keys of organizations; null without SECRETS_KEY. */
  readonly secrets: SecretBox | null
  close(): Promise<void>
}

/** Intervals and time limits, in milliseconds. */
export interface RunnerTiming {
  /** A lease that is not renewed expires after this. */
  readonly leaseMs: number
  readonly renewMs: number
  readonly sweepMs: number
  /** Between two checks whether the other runners still run. Three in a row find that one has ended. */
  readonly checkRunnersMs: number
  /**
   * How long a message waits for a free slot. Meanwhile the queue gives the other messages to runners with free slots.
   */
  readonly slotWaitMs: number
  readonly autoRunMs: number
  /** Between two looks for what people try. */
  readonly trialMs: number
  /** The delay before the second attempt at a run. It doubles with each further attempt. */
  readonly retryMs: number
  /** The grace period for steps under way when the runner stops. */
  readonly graceMs: number
}

export const DEFAULT_TIMING: RunnerTiming = {
  leaseMs: 15_000,
  renewMs: 4_000,
  sweepMs: 2_000,
  checkRunnersMs: 500,
  slotWaitMs: 1_000,
  autoRunMs: 5_000,
  trialMs: 1_000,
  retryMs: 1_000,
  graceMs: 30_000,
}

/** The time for statements under way when the runner closes its connections. */
const CLOSE_MS = 2_000

/** Replacements for tests, and for a process that runs several services. */
export interface RunnerOverrides {
  /** The caller closes it. */
  sessionQueue?: SessionQueue
  logger?: Logger
  agent?: Agent
  /** A dispatcher in this process, which is called instead of DISPATCHER_URL. */
  dispatcher?: LocalDispatcher
  timing?: Partial<RunnerTiming>
}

/** Connects lazily: an unavailable database, broker or dispatcher does not fail the start. */
export async function createRunnerContext(
  config: RunnerConfig,
  overrides: RunnerOverrides = {},
): Promise<RunnerContext> {
  const timing = { ...DEFAULT_TIMING, ...overrides.timing }
  const parts = await createServiceParts('runner', config, overrides.logger)
  const { logger, metrics, tracing } = parts
  // Unique per process start, so that a restarted runner does not own its predecessor's leases.
  const owner = `${hostname()}/${process.pid}/${randomUUID()}`
  const db: SqlDatabase = createDatabase(parts.database)
  const changeNotices = createChangeNotifier({ db, onError: parts.onNoticeError })
  const activeSessions = createActiveSessions(config.concurrency)
  const runnerMetrics = createRunnerMetrics(metrics, {
    activeSessions: () => activeSessions.size,
    slots: () => config.concurrency,
  })
  const sessionQueue =
    overrides.sessionQueue ??
    connectRabbitMq({
      url: config.amqpUrl,
      queueType: config.amqpQueueType,
      connectionName: 'runner',
      logger,
      onState: (role, state) => runnerMetrics.brokerUp.set({ role }, state === 'up' ? 1 : 0),
      onDeadLetter: (reason) => runnerMetrics.deadLetters.inc({ reason }),
    })
  if (overrides.sessionQueue) {
    for (const role of ['publisher', 'consumer']) runnerMetrics.brokerUp.set({ role }, 1)
  }
  const dispatcher = createDispatcherClient({
    transport: overrides.dispatcher
      ? createDispatcherInProcess(overrides.dispatcher)
      : createDispatcherHttp({
          url: config.dispatcherUrl,
          token: config.internalApiToken,
          connections: config.concurrency,
        }),
    logger,
    waitingDeliveries: runnerMetrics.waitingDeliveries,
  })
  registerSystemMetrics(metrics, {
    isReporter: () => isGaugeReporter(db, owner),
    backlog: () => measureBacklog(db),
    queueDepth: () => sessionQueue.depth(),
  })
  const { leaseMs } = timing
  const secrets = config.secretsKeys.length > 0 ? createSecretBox(config.secretsKeys) : null
  return {
    config,
    timing,
    owner,
    logger,
    db,
    changeNotices,
    sessionQueue,
    activeSessions,
    sessionStore: createSessionStore({
      db,
      owner,
      leaseMs,
      perOrganization: config.perOrganization,
      activeSessions,
    }),
    runStore: createRunStore(db, owner, {
      secrets,
      onNearlySpent(organizationId, { scope, budget, spent }) {
        logger.warn({ organization_id: organizationId, scope, budget, spent }, 'budget.nearly_spent')
        changeNotices.add(organizationId, 'organization')
      },
    }),
    secrets,
    dispatcher,
    agent:
      overrides.agent ??
      createAgent(config.agent, {
        modelGate: createModelLimitGate(db),
        tracing,
        logger,
        onModelAnswer: (answer) => recordModelAnswer(runnerMetrics, answer),
      }),
    metrics,
    runnerMetrics,
    tracing,
    close: async () => {
      if (!overrides.sessionQueue) await sessionQueue.close()
      await dispatcher.close()
      await tracing.stop()
      await withTimeout(changeNotices.close(), CLOSE_MS).catch(() => {})
      await withTimeout(stopReportingGauges(db, owner), CLOSE_MS).catch(() => {})
      await withTimeout(db.close(), CLOSE_MS).catch(() => logger.warn('database.close_timed_out'))
    },
  }
}
