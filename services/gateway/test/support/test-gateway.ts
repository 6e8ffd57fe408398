import { fileURLToPath } from 'node:url'
import { PUBLIC_RUN_EXAMPLE, type SessionMessage } from '@workflow-service/contract'
import { createApiKey, createDatabase, type Database, newId } from '@workflow-service/database'
import { applyManifests, toManifest } from '@workflow-service/database/manifest'
import { createInProcessQueue, type MessageProperties, type SessionQueue } from '@workflow-service/messaging'
import type { RunningService } from '@workflow-service/service-kit'
import {
  createCapturedLogger,
  createTestDatabase,
  type StartedProcess,
  startProcess,
  type TestDatabase,
} from '@workflow-service/testkit'
import { type GatewayConfig, readGatewayConfig } from '../../src/config.ts'
import { startGateway } from '../../src/start-gateway.ts'
import { type Answer, type Call, callGateway } from './call.ts'

/** An organization with an API key of all scopes. */
export interface TestOrganization {
  readonly id: string
  readonly key: string
}

/** A workflow of a manifest. */
export interface TestWorkflow extends Record<string, unknown> {
  readonly id: string
}

/** A message published to the session queue. */
export interface Published {
  readonly message: SessionMessage
  readonly properties: MessageProperties | undefined
}

/** A gateway in this process with its own database and one organization. */
export interface TestGateway {
  readonly url: string
  readonly metricsUrl: string
  readonly config: GatewayConfig
  readonly database: TestDatabase
  readonly db: Database
  readonly organization: TestOrganization
  readonly published: Published[]
  /** All log lines so far. */
  readonly logLines: Record<string, unknown>[]
  /** Calls with the organization's key by default; throws when the contract does not allow the answer. */
  call(method: string, path: string, call?: Call): Promise<Answer>
  get(path: string, call?: Call): Promise<Answer>
  start(workflowId: string, body: unknown, call?: Call): Promise<Answer>
  /** Returns the sum of a metric's series, such as `name` or `name{label="value"`; 0 if there is none. */
  metric(name: string, metricsUrl?: string): Promise<number>
  /** Creates a workflow of the test organization that can be started, with the given changes. */
  createWorkflow(change?: object): Promise<TestWorkflow>
  /** Creates a run that has succeeded, in a session of its own, with the ids of the samples. */
  createEndedRun(workflowId: string): Promise<{ id: string; sessionId: string }>
  /** Applies a manifest to a new organization or to the given one. */
  apply(manifest: object, organizationId?: string): Promise<TestOrganization>
  /** Starts another gateway on the same database. */
  startAnother(change?: Partial<GatewayConfig>): Promise<RunningService>
  stop(): Promise<void>
}

/** Returns the environment of a gateway on this database, without a broker and without a rate limit. */
export function testEnv(databaseUrl: string): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    AMQP_URL: 'amqp://127.0.0.1:1',
    HOST: '127.0.0.1',
    PORT: '0',
    METRICS_PORT: '0',
    RATE_LIMIT_PER_MINUTE: '0',
  }
}

/** Starts a gateway on a new database. `useTestGateway` also stops it. */
export async function startTestGateway(
  env: Record<string, string> = {},
  options: { sessionQueue?: SessionQueue; databaseUrl?: string } = {},
): Promise<TestGateway> {
  const database = options.databaseUrl ? { url: options.databaseUrl, drop: async () => {} } : await createTestDatabase()
  const db = createDatabase({ url: database.url, applicationName: 'test', maxConnections: 5 })
  const config = readGatewayConfig({ ...testEnv(database.url), ...env })
  const { logger, lines: logLines } = createCapturedLogger({ service: 'gateway' })
  const published: Published[] = []
  const sessionQueue = options.sessionQueue ?? recordingQueue(published)
  const running: RunningService[] = []
  const startAnother: TestGateway['startAnother'] = async (change = {}) => {
    const gateway = await startGateway({ ...config, ...change }, { sessionQueue, logger })
    running.push(gateway)
    return gateway
  }
  const apply: TestGateway['apply'] = async (manifest, organizationId = newId()) => {
    const { key } = createApiKey()
    const [applied] = await applyManifests(db, [
      toManifest({
        organization: { id: organizationId, name: 'Acme' },
        api_keys: [{ name: newId(), key, scopes: ['read', 'start'] }],
        ...manifest,
      }),
    ])
    return { id: applied!.organization.id, key }
  }
  const organization = await apply({ users: [{ email: 'ada@acme.test', first_name: 'Ada', last_name: 'Lovelace' }] })
  const { url, metricsPort } = await startAnother()
  const metricsUrl = `http://127.0.0.1:${metricsPort}`
  const call: TestGateway['call'] = (method, path, how = {}) =>
    callGateway(how.url ?? url, method, path, { key: organization.key, ...how })
  return {
    url,
    metricsUrl,
    config,
    database,
    db,
    organization,
    published,
    logLines,
    call,
    get: (path, how) => call('GET', path, how),
    start: (workflowId, body, how) => call('POST', `/v1/workflows/${workflowId}/start`, { body, ...how }),
    metric: async (name, from = metricsUrl) => {
      const text = await (await fetch(`${from}/metrics`)).text()
      const series = text.matchAll(new RegExp(`^${name}[{,][^}]*\\} ([\\d.]+)`, 'gm'))
      return [...series].reduce((sum, [, value]) => sum + Number(value), 0)
    },
    createWorkflow: async (change) => {
      const workflow = startableWorkflow({ name: newId(), ...change })
      await apply({ workflows: [workflow] }, organization.id)
      return workflow
    },
    createEndedRun: async (workflowId) => {
      const { id, session_id: sessionId } = PUBLIC_RUN_EXAMPLE
      const common = { organizationId: organization.id }
      await db.prisma.session.create({ data: { id: sessionId, lastStartNumber: 1, lastFinishedNumber: 1, ...common } })
      const ended = {
        number: 1,
        status: 'succeeded',
        finishedAt: new Date(),
        origin: 'api',
        context: '',
        requestId: 'r',
      }
      await db.prisma.start.create({ data: { id, workflowId, sessionId, ...ended, ...common } })
      return { id, sessionId }
    },
    apply,
    startAnother,
    stop: async () => {
      for (const gateway of running) await gateway.stop()
      await sessionQueue.close()
      await db.close()
      await database.drop()
    },
  }
}

/** Starts a gateway as a process, as `pnpm start` does. */
export async function startGatewayProcess(
  databaseUrl: string,
  env: Record<string, string> = {},
): Promise<StartedProcess & { readonly url: string; readonly metricsUrl: string }> {
  const started = await startProcess({
    args: [fileURLToPath(new URL('../../src/main.ts', import.meta.url))],
    env: { ...testEnv(databaseUrl), ...env },
    readyWhen: { line: '"msg":"service.started"' },
  })
  const line = started.jsonLines.find(({ msg }) => msg === 'service.started')
  const urls = { url: String(line?.['url']), metricsUrl: `http://127.0.0.1:${String(line?.['metrics_port'])}` }
  return Object.assign(started, urls)
}

/** Creates a manifest's workflow that can be started, with the given changes. */
export function startableWorkflow(change: object = {}): TestWorkflow {
  return {
    id: newId(),
    name: 'Forward orders',
    description: 'Sends orders to Order intake.',
    scope: 'company_wide',
    is_active: true,
    triggers: [apiTrigger()],
    ...change,
  }
}

/** Creates a manifest's active trigger whose source is `api`, with the given changes. */
export function apiTrigger(change: object = {}): Record<string, unknown> {
  return { name: 'From the API', is_active: true, trigger_source: { slug: 'api', name: 'API' }, ...change }
}

function recordingQueue(published: Published[]): SessionQueue {
  const queue = createInProcessQueue()
  return {
    ...queue,
    publish: (message, properties) => {
      const ids = 'session_ids' in message ? message.session_ids : [message.session_id]
      published.push(...ids.map((id) => ({ message: { session_id: id }, properties })))
      return queue.publish(message, properties)
    },
  }
}
