import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import {
  applyManifests,
  createDatabase,
  type Database,
  newId,
  recordStart,
  type RunDetails,
  showRun,
  toManifest,
} from '@workflow-service/database'
import { readDispatcherConfig, type RunningDispatcher, startDispatcher } from '@workflow-service/dispatcher'
import { createInProcessQueue, type SessionQueue } from '@workflow-service/messaging'
import { createLogger, newRequestId } from '@workflow-service/service-kit'
import {
  createTestDatabase,
  startCustomerEndpoint,
  type CustomerEndpoint,
  type StartedProcess,
  startProcess,
  waitUntil,
} from '@workflow-service/testkit'
import {
  readRunnerConfig,
  type RunnerOverrides,
  type RunnerTiming,
  type RunningRunner,
  startRunner,
} from '../../src/index.ts'

/** Clocks fast enough for a test that waits for a lease to run out. */
export const FAST: RunnerTiming = {
  leaseMs: 1_500,
  renewMs: 300,
  sweepMs: 200,
  holdMs: 1_000,
  autoRunMs: 100,
  retryMs: 10,
  graceMs: 5_000,
}

/** An organization with one workflow, whose runs post their context to one endpoint. */
export interface TestOrganization {
  readonly organizationId: string
  readonly workflowId: string
  readonly apiKeyId: string
  readonly endpoint: CustomerEndpoint
}

export interface AcceptedStart {
  readonly startId: string
  readonly sessionId: string
}

/** A database, a dispatcher and runners at work on it, all real; only the broker is the in-process queue by default. */
export interface RunnerFixture {
  readonly db: Database
  readonly databaseUrl: string
  readonly dispatcher: RunningDispatcher
  readonly queue: SessionQueue
  /** Every log line of the runners in this process. */
  readonly logLines: Record<string, unknown>[]
  /** The description names the webhook sources that a run posts to: "Order intake", "Audit log". */
  createOrganization(options?: { name?: string; description?: string }): Promise<TestOrganization>
  /** Accepts a start as the gateway does, and publishes the wake-up unless told not to. */
  start(
    organization: TestOrganization,
    options?: { context?: string; sessionId?: string; isPublished?: boolean },
  ): Promise<AcceptedStart>
  startRunner(overrides?: RunnerOverrides, env?: Record<string, string>): Promise<RunningRunner>
  /** A runner as a process of its own, without a broker: it finds its work by the sweep. */
  startRunnerProcess(timing?: Partial<RunnerTiming>, env?: Record<string, string>): Promise<StartedProcess>
  run(startId: string): Promise<RunDetails>
  waitForRuns(starts: readonly AcceptedStart[], timeoutMs?: number): Promise<RunDetails[]>
  runnerEnv(env?: Record<string, string>): Record<string, string>
  stop(): Promise<void>
}

/** Starts the fixture; `stop` it in `afterAll`. */
export async function startRunnerFixture(): Promise<RunnerFixture> {
  const token = randomBytes(24).toString('hex')
  const database = await createTestDatabase()
  const db = createDatabase({ url: database.url, applicationName: 'test', maxConnections: 8 })
  const dispatcherEnv = {
    DATABASE_URL: database.url,
    INTERNAL_API_TOKEN: token,
    SECRETS_KEY: randomBytes(32).toString('base64'),
    WEBHOOK_ALLOWED_SUBNETS: '127.0.0.0/8',
    MAX_DELIVERIES_IN_FLIGHT_PER_SOURCE: '1000',
    HOST: '127.0.0.1',
    PORT: '0',
  }
  const silent = createLogger({ service: 'dispatcher', level: 'silent' })
  const dispatcher = await startDispatcher(readDispatcherConfig(dispatcherEnv), { logger: silent })
  const queue = createInProcessQueue()
  const logLines: Record<string, unknown>[] = []
  const logger = createLogger({
    service: 'runner',
    level: 'debug',
    destination: { write: (line) => void logLines.push(JSON.parse(line) as Record<string, unknown>) },
  })
  const endpoints: CustomerEndpoint[] = []
  const runners: RunningRunner[] = []
  const processes: StartedProcess[] = []
  const runnerEnv = (env: Record<string, string> = {}) => ({
    DATABASE_URL: database.url,
    AMQP_URL: 'amqp://127.0.0.1:1',
    DISPATCHER_URL: dispatcher.url,
    INTERNAL_API_TOKEN: token,
    HOST: '127.0.0.1',
    PORT: '0',
    ...env,
  })

  const run = async (startId: string): Promise<RunDetails> => {
    const story = await showRun(db, startId)
    if (!story) throw new Error(`There is no run ${startId}`)
    return story
  }

  return {
    db,
    databaseUrl: database.url,
    dispatcher,
    queue,
    logLines,
    runnerEnv,
    run,
    async createOrganization({ name = 'Acme', description = 'Post what came in to Order intake.' } = {}) {
      const endpoint = await startCustomerEndpoint()
      endpoints.push(endpoint)
      const organizationId = newId()
      const [applied] = await applyManifests(db, [
        toManifest({
          organization: { id: organizationId, name },
          users: [{ email: 'ada@acme.test', first_name: 'Ada', last_name: 'Lovelace' }],
          api_keys: [{ name: 'ci', scopes: ['read', 'start'] }],
          workflows: [
            {
              name: 'Forward',
              description,
              scope: 'company_wide',
              is_active: true,
              triggers: [{ name: 'API', is_active: true, trigger_source: { slug: 'api', name: 'API' } }],
            },
          ],
        }),
      ])
      for (const source of ['Order intake', 'Audit log']) {
        const saved = await fetch(
          `${dispatcher.url}/internal/organizations/${organizationId}/webhook-sources/${newId()}?verify=never`,
          {
            method: 'PUT',
            headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
            body: JSON.stringify({
              name: source,
              description: 'Takes what comes.',
              endpoint_url: `${endpoint.url}/${source === 'Order intake' ? 'orders' : 'audit'}`,
              example_request_body: { message: 'text' },
            }),
          },
        )
        if (!saved.ok) throw new Error(`The source was refused: ${await saved.text()}`)
      }
      const key = await db.prisma.apiKey.findFirstOrThrow({ where: { organizationId } })
      const workflowId = applied!.workflows[0]!.id
      return { organizationId, workflowId, apiKeyId: key.id, endpoint }
    },
    async start({ organizationId, workflowId, apiKeyId }, options = {}) {
      const { context = 'hello', sessionId = null, isPublished = true } = options
      const outcome = await recordStart(db, organizationId, {
        startId: newId(),
        workflowId,
        sessionId,
        newSessionId: newId(),
        context,
        apiKeyId,
        requestId: newRequestId(),
        idempotency: null,
      })
      if (outcome.kind !== 'accepted') throw new Error(`The start was refused: ${outcome.kind}`)
      if (isPublished) await queue.publish({ session_id: outcome.sessionId })
      return outcome
    },
    async startRunner(overrides = {}, env = {}) {
      const runner = await startRunner(readRunnerConfig(runnerEnv(env)), { sessionQueue: queue, logger, ...overrides })
      runners.push(runner)
      return runner
    },
    async startRunnerProcess(timing = {}, env = {}) {
      const started = await startProcess({
        args: [fileURLToPath(new URL('runner-process.ts', import.meta.url)), JSON.stringify({ ...FAST, ...timing })],
        env: runnerEnv(env),
        readyWhen: { line: '"running"' },
      })
      processes.push(started)
      return started
    },
    waitForRuns: (starts, timeoutMs = 20_000) =>
      waitUntil(
        async () => {
          const stories = await Promise.all(starts.map(({ startId }) => run(startId)))
          return stories.every(({ status }) => status === 'succeeded' || status === 'failed') ? stories : undefined
        },
        { timeoutMs, message: `${starts.length} runs to end` },
      ),
    async stop() {
      for (const started of processes) started.kill('SIGKILL')
      await Promise.all(runners.map((runner) => runner.stop()))
      await dispatcher.stop()
      await queue.close()
      await Promise.all(endpoints.map((endpoint) => endpoint.close()))
      await db.close()
      await database.drop()
    },
  }
}
