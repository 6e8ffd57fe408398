import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll } from '@jest/globals'
import { PUBLIC_RUN_EXAMPLE } from '@workflow-service/contract'
import { createApiKey, createDatabase, issueApiKey, newId, operatorOf } from '@workflow-service/database'
import { applyManifests, toManifest } from '@workflow-service/database/manifest'
import { createInProcessQueue, type SessionQueue } from '@workflow-service/messaging'
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
import { type Call, callGateway, type GatewayResponse } from './call.ts'

/** An organization with an API key of all scopes. */
export interface TestOrganization {
  readonly id: string
  readonly key: string
}

/** A workflow of a manifest. */
export interface TestWorkflow extends Record<string, unknown> {
  readonly id: string
}

/** A gateway in this process with its own database and one organization. */
export type TestGateway = Awaited<ReturnType<typeof startTestGateway>>

/** Returns the environment of a gateway on this database, without a broker and without a rate limit. */
function testEnv(databaseUrl: string): Record<string, string> {
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
) {
  const database: TestDatabase = options.databaseUrl
    ? { url: options.databaseUrl, drop: async () => {} }
    : await createTestDatabase()
  // Manifests wait for each other, on a slow machine for longer than a statement of a service may.
  const db = createDatabase({
    url: database.url,
    applicationName: 'test',
    maxConnections: 5,
    statementTimeoutMs: 60_000,
  })
  const config = readGatewayConfig({ ...testEnv(database.url), ...env })
  const { logger, lines: logLines } = createCapturedLogger({ service: 'gateway' })
  /** Messages published to the session queue. */
  const published: Parameters<SessionQueue['publish']>[] = []
  const sessionQueue = options.sessionQueue ?? recordingQueue(published)
  const running: RunningService[] = []
  /** Starts another gateway on the same database. */
  const startAnother = async (change: Partial<GatewayConfig> = {}): Promise<RunningService> => {
    const gateway = await startGateway({ ...config, ...change }, { sessionQueue, logger })
    running.push(gateway)
    return gateway
  }
  /** Applies a manifest to a new organization or to the given one. */
  const apply = async (manifest: object, organizationId = newId()): Promise<TestOrganization> => {
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
  /** Calls with the organization's key by default; throws when the contract does not allow the response. */
  const call = (method: string, path: string, how: Call = {}): Promise<GatewayResponse> =>
    callGateway(how.url ?? url, method, path, { key: organization.key, ...how })
  return {
    url,
    metricsUrl,
    config,
    database,
    db,
    organization,
    published,
    /** All log lines so far. */
    logLines,
    call,
    get: (path: string, how?: Call) => call('GET', path, how),
    start: (workflowId: string, body: unknown, how?: Call) =>
      call('POST', `/v1/workflows/${workflowId}/start`, { body, ...how }),
    /** Returns the sum of a metric's series, such as `name` or `name{label="value"`; 0 if there is none. */
    metric: async (name: string, from = metricsUrl): Promise<number> => {
      const text = await (await fetch(`${from}/metrics`)).text()
      const series = text.matchAll(new RegExp(`^${name}[{,][^}]*\\} ([\\d.]+)`, 'gm'))
      return [...series].reduce((sum, [, value]) => sum + Number(value), 0)
    },
    /** Creates a workflow of the test organization that can be started, with the given changes. */
    createWorkflow: async (change?: object): Promise<TestWorkflow> => {
      const workflow = startableWorkflow({ name: newId(), ...change })
      await apply({ workflows: [workflow] }, organization.id)
      return workflow
    },
    /** Creates a run that has succeeded, in a session of its own, with the ids of the samples. */
    createEndedRun: async (workflowId: string): Promise<{ id: string; sessionId: string }> => {
      const { id, session_id: sessionId } = PUBLIC_RUN_EXAMPLE
      const common = { organizationId: organization.id }
      await db.prisma.session.create({ data: { id: sessionId, lastStartNumber: 1, lastFinishedNumber: 1, ...common } })
      const ended = { number: 1, status: 'succeeded', finishedAt: new Date(), origin: 'api' }
      await db.prisma.start.create({
        data: { id, workflowId, sessionId, context: '', requestId: 'r', ...ended, ...common },
      })
      return { id, sessionId }
    },
    /** Makes a key of the organization, by default of all scopes. */
    issueKey: (change: Partial<Parameters<typeof issueApiKey>[1]> = {}) => {
      const key = { name: newId(), scopes: ['read', 'start'] as const, expiresAt: null, ...change }
      return issueApiKey(db, key, operatorOf(organization.id))
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

/**
 * Sets up a gateway for the test file, or for the `describe` block that calls it: started before its first test,
 * stopped after its last one. Its properties exist only inside of hooks and tests.
 */
export function useTestGateway(env: Record<string, string> = {}): TestGateway {
  const gateway = {} as TestGateway
  let started: TestGateway | undefined
  beforeAll(async () => {
    started = await startTestGateway(env)
    Object.assign(gateway, started)
  })
  afterAll(() => started?.stop())
  return gateway
}

/** Starts a gateway as a process, as `pnpm start` does. */
export async function startGatewayProcess(
  databaseUrl: string,
): Promise<StartedProcess & { readonly url: string; readonly metricsUrl: string }> {
  const started = await startProcess({
    args: [fileURLToPath(new URL('../../src/main.ts', import.meta.url))],
    env: testEnv(databaseUrl),
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

function recordingQueue(published: Parameters<SessionQueue['publish']>[]): SessionQueue {
  const queue = createInProcessQueue()
  return {
    ...queue,
    publish: (...message) => {
      published.push(message)
      return queue.publish(...message)
    },
  }
}
