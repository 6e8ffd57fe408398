import { afterAll, beforeAll, beforeEach } from '@jest/globals'
import type { DeliveryOut } from '@workflow-service/contract'
import { type Database, newId } from '@workflow-service/database'
import type { RunningService } from '@workflow-service/service-kit'
import { createCapturedLogger, type CustomerEndpoint, startCustomerEndpoint } from '@workflow-service/testkit'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import type { DispatcherOverrides } from '../../src/dispatcher-context.ts'
import { type DispatcherConfig, readDispatcherConfig } from '../../src/config.ts'
import { startDispatcher } from '../../src/start-dispatcher.ts'
import { type Answer, callDispatcher, PAYLOAD, sourceIn, sourcePath, testEnv } from './test-dispatcher.ts'

/** A dispatcher in this process with its own database, and a customer endpoint. */
export interface UsedDispatcher {
  url: string
  config: DispatcherConfig
  db: Database
  organizationId: string
  /** Answers 204 at the beginning of each test. */
  endpoint: CustomerEndpoint
  /** The log lines of all dispatchers of the test file. */
  logLines: Record<string, unknown>[]
  /** Calls the internal API with the token. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  sourcePath(sourceId: string): string
  /** Saves a source, by default at `endpoint`, and returns the answer. */
  save(id: string, change: Record<string, unknown>, query?: string): Promise<Answer>
  /** Saves a source, which must succeed, and returns its id. */
  saveSource(change?: Record<string, unknown>, verify?: 'always' | 'never', id?: string): Promise<string>
  readSource(id: string): Promise<Answer>
  /** Returns the newest entries of a source's log. */
  readLog(id: string): Promise<DeliveryOut[]>
  /** Sends a payload, by default `PAYLOAD`, to a source. */
  send(id: string, change: { source_id: string } & Record<string, unknown>, url?: string): Promise<Answer>
  isRecorded(deliveryId: string): Promise<boolean>
  createOrganization(): Promise<string>
  /**
   * Creates a session whose current lease has this epoch, by default of the test's organization. Resolves to its id.
   */
  createSession(leaseEpoch: number, organizationId?: string): Promise<string>
  /** Creates a workflow with queued runs in a new session. */
  createRuns(count: number): Promise<{ workflowId: string; sessionId: string; runIds: string[] }>
  /** Starts another dispatcher with the same database. A test may stop it. */
  startAnother(overrides?: DispatcherOverrides, config?: Partial<DispatcherConfig>): Promise<RunningService>
}

/**
 * Sets up a dispatcher for the test file: started before its first test, stopped after its last one. The returned
 * object is filled before the first test.
 */
export function useDispatcher(overrides: DispatcherOverrides = {}, env: Record<string, string> = {}): UsedDispatcher {
  const used = {} as UsedDispatcher
  const running: RunningService[] = []
  // Registered before the hooks of useTestDatabase, so that it runs before the database is dropped.
  afterAll(async () => {
    await Promise.all(running.map((dispatcher) => dispatcher.stop()))
    await used.endpoint?.close()
  })
  const database = useTestDatabase({ maxConnections: 5 })
  beforeAll(async () => {
    const { db } = database
    const { logger, lines } = createCapturedLogger({ service: 'dispatcher' })
    const config = readDispatcherConfig({ ...testEnv(database.url), ...env })
    const endpoint = await startCustomerEndpoint()
    const startAnother: UsedDispatcher['startAnother'] = async (moreOverrides = {}, change = {}) => {
      const started = await startDispatcher({ ...config, ...change }, { logger, ...overrides, ...moreOverrides })
      let stopped: Promise<void> | undefined
      const dispatcher = { ...started, stop: () => (stopped ??= started.stop()) }
      running.push(dispatcher)
      return dispatcher
    }
    const { url } = await startAnother()
    const createOrganization = async (): Promise<string> => {
      const id = newId()
      await db.prisma.organization.create({ data: { id, name: id } })
      return id
    }
    const organizationId = await createOrganization()
    const save: UsedDispatcher['save'] = (id, change, query = '') => {
      const body = sourceIn({ endpoint_url: endpoint.url, ...change })
      return callDispatcher(url, 'PUT', `${sourcePath(organizationId, id)}${query}`, body)
    }
    Object.assign(used, {
      url,
      config,
      db,
      organizationId,
      endpoint,
      logLines: lines,
      call: (method, path, body, headers) => callDispatcher(url, method, path, body, headers),
      sourcePath: (sourceId) => sourcePath(organizationId, sourceId),
      save,
      saveSource: async (change = {}, verify = 'always', id = newId()) => {
        const answer = await save(id, change, `?verify=${verify}`)
        if (answer.status > 201) throw new Error(`The source was not saved: ${JSON.stringify(answer.body)}`)
        return id
      },
      readSource: (id) => callDispatcher(url, 'GET', sourcePath(organizationId, id)),
      readLog: async (id) =>
        (await callDispatcher(url, 'GET', `${sourcePath(organizationId, id)}/deliveries`)).body.data,
      send: (id, change, sendUrl = url) =>
        callDispatcher(sendUrl, 'PUT', `/internal/deliveries/${id}`, {
          organization_id: organizationId,
          payload: PAYLOAD,
          ...change,
        }),
      isRecorded: async (id) => (await db.prisma.delivery.findUnique({ where: { id } })) !== null,
      createOrganization,
      createRuns: async (count) => {
        const [workflowId, sessionId] = [newId(), newId()]
        const named = { name: 'Forward', description: '', searchText: '', scope: 'company_wide', isActive: true }
        await db.prisma.workflow.create({ data: { id: workflowId, organizationId, ...named } })
        await db.prisma.session.create({ data: { id: sessionId, organizationId, lastStartNumber: count } })
        const runIds = Array.from({ length: count }, () => newId())
        const common = { organizationId, workflowId, sessionId, origin: 'api', context: 'text', requestId: 'r' }
        await db.prisma.start.createMany({ data: runIds.map((id, index) => ({ id, number: index + 1, ...common })) })
        return { workflowId, sessionId, runIds }
      },
      createSession: async (leaseEpoch, ownerId = organizationId) => {
        const id = newId()
        await db.prisma.session.create({ data: { id, organizationId: ownerId, leaseEpoch } })
        return id
      },
      startAnother,
    } satisfies UsedDispatcher)
  }, 120_000)
  beforeEach(() => used.endpoint.reset())
  return used
}
