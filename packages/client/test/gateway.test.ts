import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type FailingProxy, startFailingProxy } from '@workflow-service/testkit/start-failing-proxy'
import { startableWorkflow } from '../../../services/gateway/test/support/test-gateway.ts'
import { useTestGateway } from '../../../services/gateway/test/support/use-test-gateway.ts'
import {
  type ApiError,
  type ClientOptions,
  requestIdOf,
  TimeoutError,
  WorkflowClient,
  WorkflowServiceError,
} from '../src/index.ts'

const gateway = useTestGateway()
let workflowId = ''

beforeAll(async () => {
  const inactive = Array.from({ length: 6 }, (_, index) => ({ name: `Inactive ${index}`, is_active: false }))
  const workflow = startableWorkflow()
  workflowId = workflow.id
  await gateway.apply({ workflows: [workflow, ...inactive] }, gateway.organization.id)
})

function createClient(options: Partial<ClientOptions> = {}): WorkflowClient {
  return new WorkflowClient({ apiKey: gateway.organization.key, baseUrl: gateway.url, ...options })
}

async function failureOf(call: Promise<unknown>): Promise<ApiError> {
  return call.then(
    () => expect('the call').toBe('rejected') as never,
    (error: unknown) => error as ApiError,
  )
}

describe('the client of a gateway', () => {
  test('reads the organization and a workflow', async () => {
    const client = createClient()
    expect(await client.organization.get()).toEqual({ id: gateway.organization.id, name: 'Acme' })
    const workflow = await client.workflows.get(workflowId)
    expect(workflow).toMatchObject({ id: workflowId, name: 'Forward orders', users: [{ name: 'Ada Lovelace' }] })
  })

  test('lists page by page, and all workflows with for await', async () => {
    const client = createClient()
    const first = await client.workflows.list({ limit: 3, search: 'INACTIVE' })
    expect(first.data.map(({ name }) => name)).toEqual(['Inactive 0', 'Inactive 1', 'Inactive 2'])
    const names: string[] = []
    for await (const { name } of client.workflows.list({ limit: 2 })) names.push(name)
    expect(names).toHaveLength(7)
    expect(new Set(names).size).toBe(7)
  })

  test('starts a workflow, once for each Idempotency-Key, and continues the session', async () => {
    const client = createClient()
    const first = await client.workflows.start(workflowId, { context: 'one' }, { idempotencyKey: 'k' })
    expect(await client.workflows.start(workflowId, { context: 'one' }, { idempotencyKey: 'k' })).toEqual(first)
    const second = await client.workflows.start(workflowId, { context: 'two', sessionId: first.session_id })
    expect([second.workflow_id, second.session_id]).toEqual([workflowId, first.session_id])
    expect(second.id).not.toBe(first.id)
  })

  test('follows a start until its run has ended, and not longer than its time', async () => {
    const client = createClient()
    const { id, session_id: sessionId } = await client.workflows.start(workflowId, { context: 'follow' })
    await expect(client.runs.wait(id, { totalTimeoutMs: 300 })).rejects.toBeInstanceOf(TimeoutError)
    const waiting = client.runs.wait(id)
    await gateway.db.prisma.start.update({ where: { id }, data: { status: 'succeeded', finishedAt: new Date() } })
    expect(await waiting).toMatchObject({ id, status: 'succeeded', error: null, deliveries: [] })
    expect(await client.runs.get(id)).toEqual(await waiting)
    expect(await client.sessions.get(sessionId)).toMatchObject({ id: sessionId, runs: [{ id, status: 'succeeded' }] })
  })

  test('gives the errors of the API with their code, details and request id', async () => {
    const client = createClient()
    const requestId = randomUUID()
    const invalid = await failureOf(client.workflows.start(workflowId, { context: ' ' }, { requestId }))
    expect(invalid).toMatchObject({ status: 422, code: 'validation_error', requestId, attempts: 1 })
    expect(invalid.details).toMatchObject([{ field: 'context', code: 'string_too_short' }])
    expect(gateway.logLines.some((line) => line['request_id'] === requestId)).toBe(true)

    const { data } = await client.workflows.list({ search: 'Inactive 0' })
    const inactive = await failureOf(client.workflows.start(data[0]!.id, { context: 'x' }))
    expect(inactive).toMatchObject({ status: 409, code: 'workflow_inactive', attempts: 1 })
    expect(await failureOf(client.workflows.get(randomUUID()))).toMatchObject({ status: 404, code: 'not_found' })
    expect(await failureOf(client.workflows.list({ cursor: 'x' }))).toMatchObject({ status: 422 })
    const other = createClient({ apiKey: 'wfk_other' })
    expect(await failureOf(other.organization.get())).toMatchObject({ status: 401, code: 'unauthorized' })
    expect(requestIdOf(await client.organization.get({ requestId }))).toBe(requestId)
  })
})

describe('against a server that fails at random', () => {
  const CALLS = 300
  let proxy: FailingProxy
  beforeAll(async () => (proxy = await startFailingProxy(gateway.url)))
  afterAll(async () => await proxy.close())

  test('300 calls start once each, also where the answer of a recorded start is lost', async () => {
    const client = createClient({ baseUrl: proxy.url, timeoutMs: 3000 })
    const run = randomUUID()
    let repeated = 0
    const startOnce = async (context: string): Promise<string> => {
      let idempotencyKey: string | undefined
      for (let tries = 1; ; tries += 1) {
        try {
          return (await client.workflows.start(workflowId, { context }, { idempotencyKey })).id
        } catch (error) {
          if (!(error instanceof WorkflowServiceError) || tries === 20) throw error
          ;({ idempotencyKey } = error)
          repeated += 1
        }
      }
    }
    const contexts = Array.from({ length: CALLS }, (_, index) => `${run} ${index}`)
    const ids = new Map<string, string>()
    const waiting = contexts.values()
    const work = async (): Promise<void> => {
      for (const context of waiting) ids.set(context, await startOnce(context))
    }
    // With 100 at once, a busy machine answers none of them in time, and each attempt adds to the work.
    await Promise.all(Array.from({ length: 30 }, work))

    const { rows } = await gateway.db.pool.query<{ id: string; context: string }>(
      'SELECT id, context FROM starts WHERE starts_with(context, $1)',
      [run],
    )
    expect(rows).toHaveLength(CALLS)
    for (const { id, context } of rows) expect(ids.get(context)).toBe(id)
    expect(proxy.failures).toEqual({ count: expect.any(Number), unseen: [] })
    expect(repeated).toBeGreaterThan(0)
  }, 60_000)
})
