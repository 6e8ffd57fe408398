import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import {
  createDatabase,
  type Database,
  listSourcesForAgents,
  measureBacklog,
  type SourceForAgent,
} from '@workflow-service/database'
import { connectRabbitMq, type SessionQueue } from '@workflow-service/messaging'
import {
  createLogger,
  createMetrics,
  describeError,
  type Logger,
  batchCalls,
  type Registry,
} from '@workflow-service/service-kit'
import type { Agent } from './agent/agent.ts'
import { createAgent } from './agent/create-agent.ts'
import type { RunnerConfig } from './config.ts'
import { createDispatcherClient, type DispatcherClient } from './dispatcher-client.ts'
import { createHeldSessions, type HeldSessions } from './held-sessions.ts'
import { createRunnerMetrics, type RunnerMetrics } from './runner-metrics.ts'
import { createSessionStore, type SessionStore } from './session-store.ts'

/** All that the runner's code may touch. */
export interface AppContext {
  readonly config: RunnerConfig
  readonly timing: RunnerTiming
  readonly logger: Logger
  readonly db: Database
  readonly sessionQueue: SessionQueue
  readonly held: HeldSessions
  readonly store: SessionStore
  /** The organization's webhook sources, read after the call; many runs that ask at once are answered by one statement. */
  readonly listSources: (organizationId: string) => Promise<readonly SourceForAgent[]>
  readonly dispatcher: DispatcherClient
  readonly agent: Agent
  readonly metrics: Registry
  readonly runnerMetrics: RunnerMetrics
  dispose(): Promise<void>
}

/** How often the runner does what it does by the clock. */
export interface RunnerTiming {
  /** How long a lease lasts that is not renewed, and how often it is. */
  readonly leaseMs: number
  readonly renewMs: number
  readonly sweepMs: number
  /** How long a message is held here while there is no place, so that the others go to runners that have some free. */
  readonly holdMs: number
  readonly autoRunMs: number
  /** How long the second attempt at a run waits after an error; each further one twice as long as the one before. */
  readonly retryMs: number
  /** How long running steps may take to end when the runner stops. */
  readonly graceMs: number
}

const DEFAULT_TIMING: RunnerTiming = {
  leaseMs: 15_000,
  renewMs: 4_000,
  sweepMs: 2_000,
  holdMs: 1_000,
  autoRunMs: 5_000,
  retryMs: 1_000,
  graceMs: 30_000,
}

/** What a caller in the same process, or a test, may put in place. */
export interface RunnerOverrides {
  /** Stays the caller's: it is not closed here. */
  sessionQueue?: SessionQueue
  logger?: Logger
  agent?: Agent
  timing?: Partial<RunnerTiming>
}

/** Opens nothing that can fail: a neighbour that is away is noticed by the first who asks it. */
export function createAppContext(config: RunnerConfig, overrides: RunnerOverrides = {}): AppContext {
  const timing = { ...DEFAULT_TIMING, ...overrides.timing }
  const logger = overrides.logger ?? createLogger({ service: 'runner', level: config.logLevel })
  const metrics = createMetrics('runner')
  const db = createDatabase({
    url: config.databaseUrl,
    applicationName: 'runner',
    maxConnections: config.databasePoolSize,
    onError: (error) => logger.warn({ error: describeError(error) }, 'a database connection broke'),
  })
  const held = createHeldSessions(config.concurrency)
  const runnerMetrics = createRunnerMetrics(metrics, {
    held: () => held.size,
    places: () => config.concurrency,
    depth: () => sessionQueue.depth().catch(() => undefined),
    backlog: () => measureBacklog(db).catch(() => undefined),
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
  const dispatcher = createDispatcherClient({
    url: config.dispatcherUrl,
    token: config.internalApiToken,
    connections: config.concurrency,
    logger,
  })
  return {
    config,
    timing,
    logger,
    db,
    sessionQueue,
    held,
    store: createSessionStore({
      db,
      // A name that no other runner has or ever had: after a restart it is another one's.
      owner: `${hostname()}/${process.pid}/${randomUUID()}`,
      leaseMs: timing.leaseMs,
      perOrganization: config.perOrganization,
      held,
    }),
    listSources: batchCalls(
      async (organizationIds: string[]) => {
        const sources = await listSourcesForAgents(db, [...new Set(organizationIds)])
        return organizationIds.map((organizationId) => sources.get(organizationId) ?? [])
      },
      { maxSize: 100, concurrency: 2 },
    ),
    dispatcher,
    agent:
      overrides.agent ??
      createAgent(config.agent, {
        onModelUsage: ({ inputTokens, outputTokens }) => {
          runnerMetrics.modelTokens.inc({ direction: 'input' }, inputTokens ?? 0)
          runnerMetrics.modelTokens.inc({ direction: 'output' }, outputTokens ?? 0)
        },
      }),
    metrics,
    runnerMetrics,
    dispose: async () => {
      if (!overrides.sessionQueue) await sessionQueue.close()
      await dispatcher.close()
      await db.close()
    },
  }
}
