import { randomUUID } from 'node:crypto'
import { createServer, request, type IncomingMessage, type RequestOptions, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
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
  const CALLS = 1000
  const failures = new Map<Failure, number>()
  const server = createServer((incoming, answer) => void failAtRandom(incoming, answer, gateway.url, failures))
  let url = ''

  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  test('1,000 calls start once each, also where the answer of a recorded start is lost', async () => {
    const client = createClient({ baseUrl: url, timeoutMs: 2000 })
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
    await Promise.all(Array.from({ length: 100 }, work))

    const { rows } = await gateway.db.pool.query<{ id: string; context: string }>(
      'SELECT id, context FROM starts WHERE starts_with(context, $1)',
      [run],
    )
    expect(rows).toHaveLength(CALLS)
    for (const { id, context } of rows) expect(ids.get(context)).toBe(id)
    for (const failure of FAILURES) expect([failure, (failures.get(failure) ?? 0) > 0]).toEqual([failure, true])
    expect(repeated).toBeGreaterThan(0)
  }, 60_000)
})

/**
 * What the server does in place of an answer. `lose`, `cut` and `replace` come after the gateway has recorded the
 * start.
 */
const FAILURES = ['refuse', 'status', 'lose', 'cut', 'replace', 'hang'] as const
type Failure = (typeof FAILURES)[number]

/** Passes a request on to the gateway; fails in 31 of 100 cases. */
async function failAtRandom(
  incoming: IncomingMessage,
  answer: ServerResponse,
  target: string,
  failures: Map<Failure, number>,
): Promise<void> {
  // Hanging takes a whole time-out, so it is rare.
  const failure = Math.random() < 0.01 ? 'hang' : FAILURES.slice(0, 5)[Math.floor(Math.random() * 16.5)]
  if (failure) failures.set(failure, (failures.get(failure) ?? 0) + 1)
  const fail = (status: number): void => {
    const body = { error: { code: 'service_unavailable', message: 'Try again.', request_id: 'r' } }
    answer.writeHead(status, { 'Content-Type': 'application/json', 'Retry-After': '0' }).end(JSON.stringify(body))
  }
  if (failure === 'refuse') return void incoming.socket.destroy()
  if (failure === 'status') return fail([429, 500, 503][Math.floor(Math.random() * 3)]!)
  if (failure === 'hang') return
  const options: RequestOptions = { method: incoming.method, headers: incoming.headers, agent: false }
  const passed = request(`${target}${incoming.url}`, options, (received) => {
    const chunks: Buffer[] = []
    received.on('data', (chunk: Buffer) => chunks.push(chunk))
    received.on('end', () => {
      if (failure === 'lose') return incoming.socket.destroy()
      if (failure === 'replace') return fail(503)
      const body = Buffer.concat(chunks)
      answer.writeHead(received.statusCode ?? 0, { ...received.headers, 'content-length': body.length })
      if (failure !== 'cut') return answer.end(body)
      answer.write(body.subarray(0, body.length / 2), () => incoming.socket.destroy())
    })
  })
  passed.on('error', () => incoming.socket.destroy())
  incoming.pipe(passed)
}
