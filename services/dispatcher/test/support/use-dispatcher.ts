import { afterAll, beforeAll, beforeEach } from '@jest/globals'
import { formatActor } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import type { RunningService } from '@workflow-service/service-kit'
import { createCapturedLogger, startCustomerEndpoint } from '@workflow-service/testkit'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import type { DispatcherOverrides } from '../../src/dispatcher-context.ts'
import { type DispatcherConfig, readDispatcherConfig } from '../../src/config.ts'
import { startDispatcher } from '../../src/start-dispatcher.ts'
import { callDispatcher, type InternalResponse, PAYLOAD, sourceIn, sourcePath, testEnv } from './test-dispatcher.ts'

type SetUp = Awaited<ReturnType<typeof setUp>>
/** A dispatcher in this process with its own database, and a customer endpoint. */
export type UsedDispatcher = Omit<SetUp, 'stop'>

/**
 * Sets up a dispatcher for the test file: started before its first test, stopped after its last one. The returned
 * object is filled before the first test.
 */
export function useDispatcher(overrides: DispatcherOverrides = {}, env: Record<string, string> = {}): UsedDispatcher {
  const used = {} as SetUp
  // Registered before the hooks of useTestDatabase, so that it runs before the database is dropped.
  afterAll(async () => await used.stop?.())
  const database = useTestDatabase({ maxConnections: 5 })
  beforeAll(async () => void Object.assign(used, await setUp(database, overrides, env)))
  beforeEach(() => used.endpoint.reset())
  return used
}

async function setUp(
  { db, url: databaseUrl }: ReturnType<typeof useTestDatabase>,
  overrides: DispatcherOverrides,
  env: Record<string, string>,
) {
  const { logger, lines } = createCapturedLogger({ service: 'dispatcher' })
  const config = readDispatcherConfig({ ...testEnv(databaseUrl), ...env })
  const endpoint = await startCustomerEndpoint()
  const running: RunningService[] = []
  const startAnother = async (
    moreOverrides: DispatcherOverrides = {},
    change: Partial<DispatcherConfig> = {},
  ): Promise<RunningService> => {
    const started = await startDispatcher({ ...config, ...change }, { logger, ...overrides, ...moreOverrides })
    running.push(started)
    return started
  }
  const { url } = await startAnother()
  const createOrganization = async (): Promise<string> => {
    const id = newId()
    await db.prisma.organization.create({ data: { id, name: id } })
    return id
  }
  const organizationId = await createOrganization()
  const saveIn = (owner: string, change: object = {}, id: string = newId(), query = ''): Promise<InternalResponse> => {
    const body = sourceIn({ endpoint_url: endpoint.url, ...change })
    return callDispatcher(url, 'PUT', `${sourcePath(owner, id)}${query}`, body)
  }
  const save = (id: string, change: object, query = '') => saveIn(organizationId, change, id, query)
  return {
    url,
    config,
    db,
    organizationId,
    /** Answers 204 at the beginning of each test. */
    endpoint,
    /** The log lines of all dispatchers of the test file. */
    logLines: lines,
    /** Calls the internal API with the token. */
    call: (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
      callDispatcher(url, method, path, body, headers),
    sourcePath: (sourceId: string) => sourcePath(organizationId, sourceId),
    /** Saves a source, by default at `endpoint`, and returns the response. */
    save,
    /** The same in any organization. */
    saveIn,
    /** Saves a source, which must succeed, and returns its id. */
    saveSource: async (change: Record<string, unknown> = {}, verify: 'always' | 'never' = 'always', id = newId()) => {
      const response = await save(id, change, `?verify=${verify}`)
      if (response.status > 201) throw new Error(`The source was not saved: ${JSON.stringify(response.body)}`)
      return id
    },
    readSource: (id: string) => callDispatcher(url, 'GET', sourcePath(organizationId, id)),
    /** Returns the newest entries of a source's log. */
    readLog: async (id: string) =>
      (await callDispatcher(url, 'GET', `${sourcePath(organizationId, id)}/deliveries`)).body.data,
    /** Sends a payload, by default `PAYLOAD`, to a source. */
    send: (id: string, change: { source_id: string } & Record<string, unknown>, sendUrl = url) =>
      callDispatcher(sendUrl, 'PUT', `/internal/deliveries/${id}`, {
        organization_id: organizationId,
        payload: PAYLOAD,
        ...change,
      }),
    isRecorded: async (id: string) => (await db.prisma.delivery.findUnique({ where: { id } })) !== null,
    createOrganization,
    /** Creates an admin, and returns the headers of the admin's changes. */
    createActor: async (ownerId = organizationId) => {
      const id = newId()
      await db.prisma.user.create({ data: { id, organizationId: ownerId, email: `${id}@acme.test`, role: 'admin' } })
      return { 'x-actor': formatActor({ user_id: id, name: 'Ada', address: null }) }
    },
    /** Creates a workflow with queued runs in a new session. */
    createRuns: async (count: number) => {
      const [workflowId, sessionId] = [newId(), newId()]
      const named = { name: 'Forward', description: '', searchText: '', scope: 'company_wide', isActive: true }
      await db.prisma.workflow.create({ data: { id: workflowId, organizationId, ...named } })
      await db.prisma.session.create({ data: { id: sessionId, organizationId, lastStartNumber: count } })
      const runIds = Array.from({ length: count }, () => newId())
      const common = { organizationId, workflowId, sessionId, origin: 'api', context: 'text', requestId: 'r' }
      await db.prisma.start.createMany({ data: runIds.map((id, index) => ({ id, number: index + 1, ...common })) })
      return { workflowId, sessionId, runIds }
    },
    /** Creates a session whose current lease has this epoch, by default of the test's organization. */
    createSession: async (leaseEpoch: number, ownerId = organizationId) => {
      const id = newId()
      await db.prisma.session.create({ data: { id, organizationId: ownerId, leaseEpoch } })
      return id
    },
    /** Starts another dispatcher with the same database. A test may stop it. */
    startAnother,
    stop: async () => {
      await Promise.all(running.map((dispatcher) => dispatcher.stop()))
      await endpoint.close()
    },
  }
}
