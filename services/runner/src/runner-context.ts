import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import {
  createDatabase,
  createChangeNotifier,
  createSecretBox,
  type SqlDatabase,
  isGaugeReporter,
  measureBacklog,
  stopReportingGauges,
} from '@workflow-service/database'
import { openSessionQueue, type ServiceOverrides } from '@workflow-service/messaging'
import { createServiceParts, registerSystemMetrics, withTimeout } from '@workflow-service/service-kit'
import type { Agent } from './agent/agent.ts'
import { createAgent } from './agent/create-agent.ts'
import type { RunnerConfig } from './config.ts'
import { createRunnerMetrics, recordModelAnswer } from './metrics.ts'
import { createDispatcherClient } from './runs/dispatcher-client.ts'
import { createDispatcherHttp } from './runs/dispatcher-http.ts'
import { createDispatcherInProcess, type LocalDispatcher } from './runs/dispatcher-in-process.ts'
import { createModelLimitGate } from './runs/model-limit-gate.ts'
import { createRunStore } from './runs/run-store.ts'
import { createActiveSessions } from './sessions/active-sessions.ts'
import { createSessionStore } from './sessions/session-store.ts'

/** Intervals and time limits, in milliseconds. */
export const DEFAULT_TIMING = {
  /** A lease that is not renewed expires after this. */
  leaseMs: 15_000,
  renewMs: 4_000,
  sweepMs: 2_000,
  /** Between two checks whether the other runners still run. Three in a row find that one has ended. */
  checkRunnersMs: 500,
  /**
   * How long a message waits for a free slot. Meanwhile the queue gives the other messages to runners with free slots.
   */
  slotWaitMs: 1_000,
  autoRunMs: 5_000,
  /** Between two looks for what people try. */
  trialMs: 1_000,
  /** The delay before the second attempt at a run. It doubles with each further attempt. */
  retryMs: 1_000,
  /** The grace period for steps under way when the runner stops. */
  graceMs: 30_000,
}
export type RunnerTiming = Readonly<typeof DEFAULT_TIMING>

/** The time for statements under way when the runner closes its connections. */
const CLOSE_MS = 2_000

/** Replacements for tests, and for a process that runs several services. */
export interface RunnerOverrides extends ServiceOverrides {
  agent?: Agent
  /** A dispatcher in this process, which is called instead of DISPATCHER_URL. */
  dispatcher?: LocalDispatcher
  timing?: Partial<RunnerTiming>
}

export type RunnerContext = Awaited<ReturnType<typeof createRunnerContext>>

/** Connects lazily: an unavailable database, broker or dispatcher does not fail the start. */
export async function createRunnerContext(config: RunnerConfig, overrides: RunnerOverrides = {}) {
  const timing: RunnerTiming = { ...DEFAULT_TIMING, ...overrides.timing }
  const parts = await createServiceParts('runner', config, overrides.logger)
  const { logger, metrics, tracing } = parts
  // The runner's name in leases, unique per process start: a restarted runner does not own its predecessor's leases.
  const owner = `${hostname()}/${process.pid}/${randomUUID()}`
  const db: SqlDatabase = createDatabase(parts.database)
  const changeNotices = createChangeNotifier({ db, onError: parts.onNoticeError })
  const activeSessions = createActiveSessions(config.concurrency)
  const runnerMetrics = createRunnerMetrics(metrics, config.concurrency, activeSessions)
  const sessionQueue = openSessionQueue(overrides, {
    url: config.amqpUrl,
    queueType: config.amqpQueueType,
    connectionName: 'runner',
    logger,
    onState: (role, state) => runnerMetrics.brokerUp.set({ role }, state === 'up' ? 1 : 0),
    onDeadLetter: (reason) => runnerMetrics.deadLetters.inc({ reason }),
  })
  const dispatcher = createDispatcherClient({
    transport: overrides.dispatcher ? createDispatcherInProcess(overrides.dispatcher) : createDispatcherHttp(config),
    logger,
    waitingDeliveries: runnerMetrics.waitingDeliveries,
  })
  registerSystemMetrics(metrics, {
    isReporter: () => isGaugeReporter(db, owner),
    backlog: () => measureBacklog(db),
    queueDepth: () => sessionQueue.depth(),
  })
  const { leaseMs } = timing
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
      // Decrypts keys of organizations.
      secrets: config.secretsKeys.length > 0 ? createSecretBox(config.secretsKeys) : null,
      onNearlySpent(organizationId, { scope, budget, spent }) {
        logger.warn({ organization_id: organizationId, scope, budget, spent }, 'budget.nearly_spent')
        changeNotices.add(organizationId, 'organization')
      },
    }),
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
      await sessionQueue.close()
      await dispatcher.close()
      await tracing.stop()
      await withTimeout(changeNotices.close(), CLOSE_MS).catch(() => {})
      await withTimeout(stopReportingGauges(db, owner), CLOSE_MS).catch(() => {})
      await withTimeout(db.close(), CLOSE_MS).catch(() => logger.warn('database.close_timed_out'))
    },
  }
}
