import { randomBytes } from 'node:crypto'
import type { AppOperationId, RunStatus } from '@workflow-service/contract'
import { newId, workflowSearchText } from '@workflow-service/database'
import { readDispatcherConfig, startDispatcher } from '@workflow-service/dispatcher'
import { createInternalClient } from '@workflow-service/service-kit/internal-client'
import { createCapturedLogger, startCustomerEndpoint } from '@workflow-service/testkit'
import { type AppCall, type Caller, INTERNAL_API_TOKEN, type TestApp, testEnv } from './test-app.ts'

/** An application with a dispatcher and a customer's endpoint. */
export type DataApp = Awaited<ReturnType<typeof startDataApp>>

interface RunChange {
  readonly status?: RunStatus
  readonly sessionId?: string
  readonly number?: number
  readonly createdAt?: Date
  readonly finishedAt?: Date
  readonly notSucceededAt?: Date
  readonly requestId?: string
  readonly userId?: string
  readonly context?: string
  readonly error?: string
}

interface DeliveryChange {
  readonly runId?: string | null
  readonly outcome?: string
  readonly createdAt?: Date
  readonly finishedAt?: Date | null
  readonly requestBody?: object
  readonly resendOf?: string
}

export const EXAMPLE = { order_id: 'A-1', total: 99.5 }

/** The body of a save of a source. */
export function sourceIn(change: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    name: `Order intake ${newId()}`,
    description: 'Takes orders.',
    endpoint_url: 'http://127.0.0.1:9/',
    signing_secret: 'a signing secret of this test, long enough',
    example_request_body: EXAMPLE,
    version: null,
    ...change,
  }
}

/** The body of a save of a look-up. */
export function lookupIn(change: { url: string; name?: string; version?: string }) {
  const parameters = { type: 'object', properties: { q: { type: 'string' } } }
  const tools = [{ name: 'find', path: '/', parameters }]
  return { name: `Customers ${newId()}`, kind: 'http', tools, version: null, ...change }
}

/** The body that creates an API key. */
export function keyIn(change: object = {}) {
  return { id: newId(), name: `Key ${newId()}`, scopes: ['read'], expires_at: null, ...change }
}

/** The body that adds a user, by default one without a role. */
export function userIn(change: object = {}) {
  return { id: newId(), email: `${newId()}@acme.test`, first_name: '', last_name: '', role: null, ...change }
}

/** Starts the dispatcher, the endpoint, and another process of the application that uses them. */
export async function startDataApp(app: TestApp, hasMaintenance = true) {
  /** Answers 204 at the beginning of each test. */
  const endpoint = await startCustomerEndpoint()
  app.stack.defer(() => endpoint.close())
  const env = {
    ...testEnv(app.config.databaseUrl),
    SECRETS_KEY: randomBytes(32).toString('base64'),
    WEBHOOK_ALLOWED_SUBNETS: '127.0.0.0/8',
  }
  const { logger } = createCapturedLogger({ service: 'dispatcher' })
  const dispatcher = await startDispatcher(readDispatcherConfig(env), { logger })
  app.stack.defer(() => dispatcher.stop())
  const { url } = await app.startAnother({ dispatcherUrl: dispatcher.url }, hasMaintenance)
  /** Calls the application that uses the dispatcher. */
  const call = <Id extends AppOperationId>(who: Caller, id: Id, request: AppCall = {}) =>
    app.call(who, id, { url, ...request })
  const { prisma } = app.db
  const internal = createInternalClient({ url: dispatcher.url, token: INTERNAL_API_TOKEN })
  return {
    app,
    url,
    endpoint,
    dispatcherUrl: dispatcher.url,
    /** The settings of a further service, such as a runner. */
    env: { ...env, DISPATCHER_URL: dispatcher.url },
    call,
    /** Saves a source as an admin, which must succeed, and returns its id. */
    saveSource: async (change: Record<string, unknown> = {}, organization = app.organization) => {
      const id = newId()
      const body = sourceIn({ endpoint_url: endpoint.url, ...change })
      const response = await call(organization.admin, 'saveWebhookSource', { params: { source_id: id }, body })
      if (response.status !== 200) throw new Error(response.text)
      endpoint.requests.length = 0
      return id
    },
    /** Saves a look-up as an admin, which must succeed, and returns its id. */
    saveLookup: async (name = `Customers ${newId()}`, organization = app.organization) => {
      const id = newId()
      const body = lookupIn({ url: endpoint.url, name })
      const response = await call(organization.admin, 'saveLookup', { params: { lookup_id: id }, body })
      if (response.status !== 200) throw new Error(response.text)
      return id
    },
    /** Sends a payload through the dispatcher. */
    send: async (sourceId: string, runId: string | null = null) => {
      const payload = { order_id: 'B-2', total: 12 }
      const { body } = await internal.call('sendPayload', {
        params: { delivery_id: newId() },
        body: { organization_id: app.organization.id, source_id: sourceId, payload, run_id: runId },
        requestId: newId(),
      })
      return body
    },
    /** Inserts a workflow that everyone, or these users, see. */
    createWorkflow: async (
      name: string,
      userIds: readonly string[] | null = null,
      organizationId = app.organization.id,
    ) => {
      const workflowId = newId()
      const scope = userIds === null ? 'company_wide' : 'only_me'
      const texts = { name, description: '', searchText: workflowSearchText(name, '') }
      await prisma.workflow.create({ data: { id: workflowId, organizationId, ...texts, scope, isActive: true } })
      const data = (userIds ?? []).map((userId) => ({ organizationId, workflowId, userId }))
      if (data.length > 0) await prisma.workflowUser.createMany({ data })
      return workflowId
    },
    /** Inserts a run in a session of its own, or a given one. */
    createRun: async (workflowId: string, change: RunChange = {}) => {
      const { status = 'succeeded', number = 1, createdAt = new Date(), sessionId = newId() } = change
      const isFailed = status === 'failed' || status === 'cancelled'
      const hasEnded = isFailed || status === 'succeeded'
      const { organizationId } = await prisma.workflow.findUniqueOrThrow({ where: { id: workflowId } })
      const counts = { lastStartNumber: number, lastFinishedNumber: hasEnded ? number : number - 1 }
      const session = { id: sessionId, organizationId, ...counts }
      await prisma.session.upsert({ where: { id: sessionId }, create: session, update: counts })
      const finishedAt = hasEnded ? new Date(createdAt.getTime() + 1_000) : null
      const id = newId()
      await prisma.start.create({
        data: {
          id,
          organizationId,
          workflowId,
          sessionId,
          number,
          origin: change.userId === undefined ? 'auto_run' : 'app',
          context: 'Order 17',
          requestId: newId(),
          status,
          attempts: 1,
          createdAt,
          startedAt: status === 'queued' ? null : createdAt,
          finishedAt,
          notSucceededAt: isFailed ? finishedAt : null,
          error: status === 'failed' ? 'delivery_rejected: The endpoint answered 500.' : null,
          ...change,
        },
      })
      return id
    },
    addSteps: async (runId: string, ...steps: (readonly [kind: string, data: object])[]) => {
      await prisma.runStep.createMany({
        data: steps.map(([kind, data], position) => ({ runId, position, kind, data, epoch: 1 })),
      })
    },
    /** Inserts a delivery of a payload, which was accepted, and returns its id. */
    addDelivery: async (sourceId: string, change: DeliveryChange = {}) => {
      const { organizationId } = await prisma.webhookSource.findUniqueOrThrow({ where: { id: sourceId } })
      const delivery = { outcome: 'accepted', requestBody: EXAMPLE, createdAt: new Date(), ...change }
      const data = { id: newId(), organizationId, sourceId, kind: 'payload', status: 204, finishedAt: new Date() }
      return (await prisma.delivery.create({ data: { ...data, ...delivery } })).id
    },
    /** Inserts a payload of the run that waits for an approval, and returns the id of its delivery. */
    createApproval: async (runId: string, change: { sourceId?: string; expiresAt?: Date } = {}) => {
      const { organizationId } = await prisma.start.findUniqueOrThrow({ where: { id: runId } })
      const source = { sourceId: newId(), sourceName: 'Order intake', expiresAt: new Date(Date.now() + 86_400_000) }
      const data = { deliveryId: newId(), organizationId, runId, requestBody: EXAMPLE, ...source, ...change }
      return (await prisma.approval.create({ data })).deliveryId
    },
  }
}
