import { beforeAll, describe, expect, test } from '@jest/globals'
import type { PublicRunOut, PublicSessionOut } from '@workflow-service/contract'
import { newId, operatorOf, revokeApiKey } from '@workflow-service/database'
import { beginTransaction, countLocked, waitUntil } from '@workflow-service/testkit'
import { useTestGateway } from './support/test-gateway.ts'

const gateway = useTestGateway()
let workflowId: string
beforeAll(async () => {
  workflowId = (await gateway.createWorkflow()).id
})

const start = async (sessionId?: string) =>
  (await gateway.start(workflowId, { context: 'go', ...(sessionId && { session_id: sessionId }) })).body
const getRun = async (id: string, query = '', url?: string) =>
  await gateway.get(`/v1/runs/${id}${query}`, url === undefined ? {} : { url })
const runOf = async (id: string, query = '') => (await getRun(id, query)).body as unknown as PublicRunOut
const end = async (id: string, status: string, error: string | null = null): Promise<void> => {
  await gateway.db.prisma.start.update({ where: { id }, data: { status, error, finishedAt: new Date() } })
}
const waiting = async (count: number) =>
  await waitUntil(async () => (await gateway.metric('gateway_run_waits')) === count)

/** Waits for a run with a key that is revoked meanwhile. */
async function waitAndRevoke() {
  const { key, apiKey } = await gateway.issueKey({ scopes: ['read'] })
  const { id } = await start()
  const response = gateway.get(`/v1/runs/${id}?wait=30`, { key })
  await waiting(1)
  await revokeApiKey(gateway.db, { id: apiKey.id }, operatorOf(gateway.organization.id))
  await waitUntil(async () => (await gateway.get('/v1/organization', { key })).status === 401)
  return { id, key, response }
}

describe('GET /v1/runs/{run_id}', () => {
  test('returns what became of a start, with its deliveries', async () => {
    const { id, session_id: sessionId } = await start()
    const queued = await runOf(id)
    expect(queued).toEqual({
      id,
      workflow_id: workflowId,
      session_id: sessionId,
      number: 1,
      status: 'queued',
      error: null,
      created_at: expect.any(String),
      started_at: null,
      finished_at: null,
      deliveries: [],
    })
    const sourceId = newId()
    const common = { organizationId: gateway.organization.id, sourceId, kind: 'payload', requestBody: {}, runId: id }
    const [first, again] = [newId(), newId()]
    await gateway.db.prisma.delivery.createMany({
      data: [
        { id: first, outcome: 'rejected', status: 500, finishedAt: new Date(), ...common },
        { id: again, outcome: 'accepted', status: 200, finishedAt: new Date(), resendOf: first, ...common },
      ],
    })
    await end(id, 'failed', 'delivery_rejected: The endpoint answered 500: no')
    const failed = await runOf(id)
    expect(failed.error).toEqual({ code: 'delivery_rejected', message: 'The endpoint answered 500: no' })
    expect(failed.deliveries).toMatchObject([{ id: first, source_id: sourceId, outcome: 'rejected', status: 500 }])
    expect(failed.finished_at).toEqual(expect.any(String))
  })

  test('is 404 for a run of another organization, and 422 for what is no id or no time to wait', async () => {
    const { id } = await start()
    const other = await gateway.apply({})
    expect((await gateway.get(`/v1/runs/${id}`, { key: other.key })).status).toBe(404)
    expect((await getRun(newId())).status).toBe(404)
    expect((await getRun('1')).status).toBe(422)
    expect((await getRun(id, '?wait=31')).violations).toEqual([['wait', 'less_than_equal']])
  })

  test('waits until the run has ended, for any number of requests with one statement', async () => {
    const { id } = await start()
    const responses = Promise.all(Array.from({ length: 50 }, () => runOf(id, '?wait=30')))
    await waiting(50)
    await end(id, 'cancelled')
    expect(new Set((await responses).map(({ status }) => status))).toEqual(new Set(['cancelled']))
    await waiting(0)
  })

  test('answers with the run as it is when the time is over, and at once when it has ended', async () => {
    const { id } = await start()
    expect(await runOf(id, '?wait=1')).toMatchObject({ status: 'queued' })
    await end(id, 'succeeded')
    expect(await runOf(id, '?wait=30')).toMatchObject({ status: 'succeeded' })
  })

  test('forgets a request whose caller has gone', async () => {
    const { id } = await start()
    const abort = new AbortController()
    const headers = { authorization: `Bearer ${gateway.organization.key}` }
    const gone = fetch(`${gateway.url}/v1/runs/${id}?wait=30`, { headers, signal: abort.signal }).catch(() => 'gone')
    await waiting(1)
    abort.abort()
    expect(await gone).toBe('gone')
    await waiting(0)
  })

  test('leaves connections to others when the time of many requests is over at once', async () => {
    const ids = await Promise.all(Array.from({ length: 30 }, async () => (await start()).id))
    const responses = Promise.all(ids.map((id) => runOf(id, '?wait=5')))
    await waiting(30)
    using lock = await beginTransaction(gateway.db.pool)
    await lock.query('LOCK TABLE starts')
    await waiting(0)
    const countReads = () => countLocked(gateway.db.pool, 'FROM starts WHERE organization_id')
    await waitUntil(async () => (await countReads()) >= 10)
    expect((await gateway.get('/v1/organization')).status).toBe(200)
    expect(await countReads()).toBe(10)
    await lock.query('ROLLBACK')
    expect((await responses).map(({ id, status }) => ({ id, status }))).toEqual(
      ids.map((id) => ({ id, status: 'queued' })),
    )
  })

  test('is refused when the key was revoked meanwhile', async () => {
    const { id, response } = await waitAndRevoke()
    await end(id, 'succeeded')
    expect((await response).status).toBe(401)
  })

  test('says nothing new to a key that cannot be looked up again', async () => {
    const { id, key, response } = await waitAndRevoke()
    using client = await beginTransaction(gateway.db.pool)
    await client.query('LOCK TABLE api_keys')
    // Until the key is no longer in the cache.
    await waitUntil(async () => (await gateway.get('/v1/organization', { key })).status === 503)
    await end(id, 'succeeded')
    expect(await response).toMatchObject({ status: 200, body: { status: 'queued' } })
  })

  test('is answered when the gateway stops', async () => {
    const another = await gateway.startAnother()
    const { id } = await start()
    const response = getRun(id, '?wait=30', another.url)
    await waitUntil(
      async () => (await gateway.metric('gateway_run_waits', `http://127.0.0.1:${another.metricsPort}`)) === 1,
    )
    await another.stop()
    expect(await response).toMatchObject({ status: 200, body: { id, status: 'queued' } })
  })
})

test('GET /v1/sessions/{session_id} returns a session with its latest runs, of the own organization only', async () => {
  const { id: first, session_id: sessionId } = await start()
  const { id: second } = await start(sessionId)
  const { body } = await gateway.get(`/v1/sessions/${sessionId}`)
  const session = body as unknown as PublicSessionOut
  expect(session).toMatchObject({ id: sessionId, is_open: true, start_count: 2, closed_at: null })
  expect(session.runs.map(({ id, number }) => [id, number])).toEqual([
    [second, 2],
    [first, 1],
  ])
  const other = await gateway.apply({})
  expect((await gateway.get(`/v1/sessions/${sessionId}`, { key: other.key })).status).toBe(404)
})
