import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll } from '@jest/globals'
import { type Database, newId, recordStart, type RunDetails, showRun } from '@workflow-service/database'
import { applyManifests, toManifest } from '@workflow-service/database/manifest'
import { readDispatcherConfig, type RunningDispatcher, startDispatcher } from '@workflow-service/dispatcher'
import { createInProcessQueue } from '@workflow-service/messaging'
import { createLogger, newRequestId, type RunningService } from '@workflow-service/service-kit'
import {
  type Answer,
  createCapturedLogger,
  type CustomerEndpoint,
  startCustomerEndpoint,
  type StartedProcess,
  startProcess,
  waitUntil,
} from '@workflow-service/testkit'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { readRunnerConfig, type RunnerOverrides, type RunnerTiming, startRunner } from '../../src/index.ts'

/** Short intervals, for tests that wait until a lease expires. */
export const FAST_TIMING: RunnerTiming = {
  leaseMs: 1_500,
  renewMs: 300,
  sweepMs: 200,
  checkRunnersMs: 500,
  slotWaitMs: 1_000,
  autoRunMs: 1_000,
  trialMs: 1_000,
  retryMs: 10,
  graceMs: 5_000,
}

/** With the usual lease: loading the AI SDK takes longer than a short one on a busy machine. */
export const MODEL_TIMING: RunnerTiming = { ...FAST_TIMING, leaseMs: 15_000, renewMs: 4_000 }

/** An interval during which no test ends. */
export const NEVER_MS = 600_000

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

/** The path of a webhook source's endpoint: `/orders` for "Order intake", `/audit` for "Audit log". */
function pathOf(name: string): string {
  return { 'Order intake': '/orders', 'Audit log': '/audit' }[name] ?? `/${encodeURIComponent(name)}`
}

/** Rules that send the context as it is to each of the sources that the description names. */
function sendContextTo(description: string, sources: readonly string[]): string {
  const named = sources.filter((name) => description.includes(name))
  return `deliveries:\n${named.map((name) => `  - { to: ${name}, payload: { message: context } }\n`).join('')}`
}

/** What an organization of a test has. */
interface OrganizationOptions {
  readonly description?: string
  readonly files?: readonly { name: string; content: string }[]
  /**
   * By name, the example request body of each webhook source and the endpoint's answer, instead of "Order intake" and
   * "Audit log".
   */
  readonly sources?: Readonly<Record<string, { example: object; answer?: Answer }>>
}

async function createOrganization(
  db: Database,
  put: (path: string, body: object) => Promise<void>,
  {
    description = 'Post it to Order intake.',
    sources = { 'Order intake': { example: { message: 'text' } }, 'Audit log': { example: { message: 'text' } } },
    files = [{ name: 'rules.yaml', content: sendContextTo(description, Object.keys(sources)) }],
  }: OrganizationOptions = {},
): Promise<TestOrganization> {
  const named = Object.entries(sources).map(([name, source]) => ({ name, path: pathOf(name), ...source }))
  const paths = named.flatMap(({ path, answer }) => (answer === undefined ? [] : [[path, answer] as const]))
  const endpoint = await startCustomerEndpoint({ paths: Object.fromEntries(paths) })
  const organizationId = newId()
  const manifest = toManifest({
    organization: { id: organizationId, name: 'Acme' },
    users: [{ email: 'ada@acme.test', first_name: 'Ada', last_name: 'Lovelace' }],
    api_keys: [{ name: 'ci', scopes: ['read', 'start'] }],
    workflows: [
      {
        name: 'Forward',
        description,
        scope: 'company_wide',
        is_active: true,
        triggers: [{ name: 'API', is_active: true, trigger_source: { slug: 'api', name: 'API' } }],
        files,
      },
    ],
  })
  const [applied] = await applyManifests(db, [manifest])
  for (const { name, path, example } of named) {
    await put(`${organizationId}/webhook-sources/${newId()}?verify=never`, {
      name,
      description: 'Accepts any message.',
      endpoint_url: `${endpoint.url}${path}`,
      example_request_body: example,
    })
  }
  const key = await db.prisma.apiKey.findFirstOrThrow({ where: { organizationId } })
  const workflowId = applied!.workflows[0]!.id
  return { organizationId, workflowId, apiKeyId: key.id, endpoint }
}

function startTestDispatcher(databaseUrl: string, token: string, secretsKey: string): Promise<RunningDispatcher> {
  const config = readDispatcherConfig({
    DATABASE_URL: databaseUrl,
    INTERNAL_API_TOKEN: token,
    SECRETS_KEY: secretsKey,
    WEBHOOK_ALLOWED_SUBNETS: '127.0.0.0/8',
    MAX_DELIVERIES_IN_FLIGHT_PER_SOURCE: '1000',
    HOST: '127.0.0.1',
    PORT: '0',
  })
  return startDispatcher(config, { logger: createLogger({ service: 'dispatcher', level: 'silent' }) })
}

/** Ends what a test has left: a runner of a later one would take over the sessions of a runner that has ended. */
async function cancelUnfinishedRuns(db: Database): Promise<void> {
  await db.pool.query(
    `WITH cancelled AS (UPDATE starts SET status = 'cancelled', finished_at = now() WHERE finished_at IS NULL)
     UPDATE sessions SET last_finished_number = last_start_number, waiting_since = NULL, lease_owner = NULL,
       lease_until = NULL, paused_source_id = NULL
     WHERE last_finished_number < last_start_number OR lease_owner IS NOT NULL`,
  )
}

/**
 * Sets up a real database and dispatcher, and runners on them, for a test file. The session queue is in-process by
 * default.
 * @param shape How the runners of this process reach the dispatcher: by HTTP, or as a function (services/compact).
 */
export function useRunnerFixture(shape: 'two processes' | 'one process' = 'two processes') {
  const token = randomBytes(24).toString('hex')
  const secretsKey = randomBytes(32).toString('base64')
  const queue = createInProcessQueue()
  const { logger, lines: logLines } = createCapturedLogger({ service: 'runner' })
  const endpoints: CustomerEndpoint[] = []
  const runners: RunningService[] = []
  const processes: StartedProcess[] = []
  let runningDispatcher: RunningDispatcher | undefined
  const dispatcher = (): RunningDispatcher => {
    if (!runningDispatcher) throw new Error('The dispatcher runs only inside of hooks and tests')
    return runningDispatcher
  }

  afterEach(async () => {
    for (const started of processes.splice(0)) started.kill('SIGKILL')
    await Promise.all(runners.splice(0).map((runner) => runner.stop()))
    await cancelUnfinishedRuns(database.db)
  })
  // Jest calls the hooks in this order: the dispatcher starts after, and stops before, its database.
  afterAll(async () => {
    await runningDispatcher?.stop()
    await queue.close()
    await Promise.all(endpoints.map((endpoint) => endpoint.close()))
  })
  // What prepares a test may take longer on a slow machine than a statement of a service may.
  const database = useTestDatabase({ maxConnections: 8, statementTimeoutMs: 60_000 })
  beforeAll(async () => {
    runningDispatcher = await startTestDispatcher(database.url, token, secretsKey)
  })

  const runnerEnv = (env: Record<string, string>): Record<string, string> => ({
    DATABASE_URL: database.url,
    AMQP_URL: 'amqp://127.0.0.1:1',
    DISPATCHER_URL: dispatcher().url,
    INTERNAL_API_TOKEN: token,
    HOST: '127.0.0.1',
    PORT: '0',
    ...env,
  })
  /** Saves something of an organization by the dispatcher. */
  const put = async (path: string, body: object): Promise<void> => {
    const saved = await fetch(`${dispatcher().url}/internal/organizations/${path}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (!saved.ok) throw new Error(await saved.text())
  }
  const run = async (startId: string): Promise<RunDetails> => {
    const details = await showRun(database.db, startId)
    if (!details) throw new Error(`There is no run ${startId}`)
    return details
  }

  return {
    get db(): Database {
      return database.db
    },
    /** That of the dispatcher. */
    secretsKey,
    /** Saves a key of the organization's own by the dispatcher. */
    saveModelKey: ({ organizationId }: TestOrganization, body: { model: string; key: string }) =>
      put(`${organizationId}/model-keys`, body),
    queue,
    /** The log lines of the runners in this process. */
    logLines,
    run,
    /**
     * The workflow's description names the webhook sources that its runs post to: "Order intake", "Audit log". Without
     * `files`, rules send them the whole context as the field `message`.
     */
    async createOrganization(options?: OrganizationOptions) {
      const organization = await createOrganization(database.db, put, options)
      endpoints.push(organization.endpoint)
      return organization
    },
    /** Records a start as the gateway does, and publishes its message by default. */
    async start(
      { organizationId, workflowId, apiKeyId }: TestOrganization,
      options: { context?: string; sessionId?: string; isPublished?: boolean } = {},
    ): Promise<AcceptedStart> {
      const { context = 'hello', sessionId = null, isPublished = true } = options
      const outcome = await recordStart(database.db, organizationId, {
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
    /** Starts a runner in this process; it stops after the test. */
    async startRunner(overrides: RunnerOverrides = {}, env: Record<string, string> = {}) {
      const config = readRunnerConfig(runnerEnv(env))
      const inProcess = shape === 'one process' ? { dispatcher: dispatcher().local } : {}
      const options = { sessionQueue: queue, logger, timing: FAST_TIMING, ...inProcess, ...overrides }
      const runner = await startRunner(config, options)
      runners.push(runner)
      return runner
    },
    /** Starts a runner as a process without a broker, which finds work by its sweep; it is killed after the test. */
    async startRunnerProcess(timing: Partial<RunnerTiming> = {}, env: Record<string, string> = {}) {
      const args = [
        fileURLToPath(new URL('runner-process.ts', import.meta.url)),
        JSON.stringify({ ...FAST_TIMING, ...timing }),
      ]
      const started = await startProcess({ args, env: runnerEnv(env), readyWhen: { line: '"service.started"' } })
      processes.push(started)
      return started
    },
    waitForStatus: ({ startId }: AcceptedStart, status: RunDetails['status']): Promise<RunDetails> =>
      waitUntil(async () => {
        const details = await run(startId)
        return details.status === status ? details : undefined
      }),
    waitForRuns: (starts: readonly AcceptedStart[]): Promise<RunDetails[]> =>
      waitUntil(
        async () => {
          const runs = await Promise.all(starts.map(({ startId }) => run(startId)))
          return runs.every(({ finished_at: end }) => end !== null) ? runs : undefined
        },
        { timeoutMs: 20_000, message: `${starts.length} runs to end` },
      ),
  }
}
