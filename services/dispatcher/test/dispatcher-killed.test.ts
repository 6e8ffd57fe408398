import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import {
  type CustomerEndpoint,
  startCustomerEndpoint,
  type StartedProcess,
  untilLocked,
  waitUntil,
} from '@workflow-service/testkit'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import {
  type Answer,
  callDispatcher,
  PAYLOAD,
  sendAll,
  sendTogether,
  sourceIn,
  sourcePath,
  startDispatcherProcess,
  testEnv,
} from './support/test-dispatcher.ts'

const organizationId = newId()
const sourceId = newId()

let endpoint: CustomerEndpoint
let env: Record<string, string>
let dispatcher: { url: string; process: StartedProcess }

// Registered before the hooks of useTestDatabase, so that it runs before the database is dropped.
afterAll(async () => {
  await dispatcher.process.stop()
  await endpoint.close()
})
const database = useTestDatabase({ maxConnections: 5 })
beforeAll(async () => {
  await database.db.prisma.organization.create({ data: { id: organizationId, name: 'Acme' } })
  endpoint = await startCustomerEndpoint()
  env = testEnv(database.url)
  dispatcher = await startDispatcherProcess(env)
  const path = sourcePath(organizationId, sourceId)
  await callDispatcher(dispatcher.url, 'PUT', path, sourceIn({ endpoint_url: endpoint.url }))
}, 120_000)
beforeEach(() => {
  endpoint.requests.length = 0
  endpoint.answerWith({ status: 200, body: 'booked' })
})

const send = (id: string, url = dispatcher.url): Promise<Answer> =>
  callDispatcher(url, 'PUT', `/internal/deliveries/${id}`, {
    organization_id: organizationId,
    source_id: sourceId,
    payload: PAYLOAD,
  })

const resend = (id: string, resendOf: string): Promise<Answer> =>
  callDispatcher(dispatcher.url, 'PUT', `/internal/deliveries/${id}`, {
    organization_id: organizationId,
    resend_of: resendOf,
    sent_by: newId(),
  })

async function killAndRestart(): Promise<void> {
  dispatcher.process.kill('SIGKILL')
  await dispatcher.process.exited
  await passDeadline()
  dispatcher = await startDispatcherProcess(env)
}

/**
 * Makes deliveries in flight older than their deadline of 40 s, once PostgreSQL has ended the statements of the killed
 * dispatcher, which may still record one.
 */
async function passDeadline(): Promise<void> {
  await waitUntil(async () => {
    const connections = await database.db.pool.query(
      `SELECT FROM pg_stat_activity WHERE application_name = 'dispatcher' AND datname = current_database()`,
    )
    return connections.rows.length === 0
  })
  await database.db.pool.query(
    `UPDATE deliveries SET created_at = created_at - interval '1 minute' WHERE outcome = 'in_flight'`,
  )
}

/** Runs the work while no other connection can write to the table of deliveries. */
async function whileLocked(work: () => Promise<void>): Promise<void> {
  const client = await database.db.pool.connect()
  try {
    await client.query('BEGIN')
    await client.query('LOCK TABLE deliveries IN SHARE ROW EXCLUSIVE MODE')
    await work()
  } finally {
    await client.query('ROLLBACK')
    client.release()
  }
}

describe('a dispatcher that is killed', () => {
  test('during the request: the outcome is unknown, and no second request is sent', async () => {
    const id = newId()
    endpoint.answerWith('hang')
    const call = send(id).catch(() => 'disconnected')
    await endpoint.waitForRequests(1)
    await killAndRestart()
    expect(await call).toBe('disconnected')
    endpoint.answerWith({ status: 200 })
    const answer = await send(id)
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'unknown', status: null } })
    expect((await send(id)).body).toEqual(answer.body)
    expect(endpoint.requests).toHaveLength(1)
  })

  test('between two answers to one request: the payload without one is unknown, and neither is sent again', async () => {
    const [answered, hanging] = [newId(), newId()]
    const deliveries = [answered, hanging].map((id) => ({
      delivery_id: id,
      body: { organization_id: organizationId, source_id: sourceId, payload: { ...PAYLOAD, order_id: id } },
    }))
    endpoint.answerWith(({ json }) =>
      (json as typeof PAYLOAD).order_id === hanging ? 'hang' : { status: 200, body: 'booked' },
    )
    const lines = sendTogether(dispatcher.url, deliveries)
    expect((await lines.next()).value).toMatchObject({ index: 0, status: 200, body: { outcome: 'accepted' } })
    await endpoint.waitForRequests(2)
    await killAndRestart()
    // How a cut connection ends depends on the reader; no line comes.
    expect(await lines.next().catch(() => ({ done: true }))).toMatchObject({ done: true })
    endpoint.answerWith({ status: 200 })
    expect(await sendAll(dispatcher.url, deliveries)).toMatchObject([
      { index: 0, body: { outcome: 'accepted', answer: 'booked' } },
      { index: 1, body: { outcome: 'unknown' } },
    ])
    expect(endpoint.requests).toHaveLength(2)
  })

  test('while it sends a payload again: the outcome is unknown, and it is sent once', async () => {
    const [first, id] = [newId(), newId()]
    await send(first)
    endpoint.requests.length = 0
    endpoint.answerWith('hang')
    const call = resend(id, first).catch(() => 'disconnected')
    await endpoint.waitForRequests(1)
    await killAndRestart()
    expect(await call).toBe('disconnected')
    endpoint.answerWith({ status: 200 })
    const answer = await resend(id, first)
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'unknown', resend_of: first } })
    expect((await resend(id, first)).body).toEqual(answer.body)
    expect(endpoint.requests).toHaveLength(1)
  })

  test('after the request, before its outcome is recorded: the outcome is unknown, and no second request is sent', async () => {
    const id = newId()
    const { promise, resolve } = Promise.withResolvers<void>()
    endpoint.answerWith(async () => {
      await promise
      return { status: 200 }
    })
    const call = send(id).catch(() => 'disconnected')
    await endpoint.waitForRequests(1)
    await whileLocked(async () => {
      resolve()
      await untilLocked(database.db.pool, 'UPDATE deliveries SET outcome = result.outcome')
      dispatcher.process.kill('SIGKILL')
      await dispatcher.process.exited
      await database.db.pool.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dispatcher' AND datname = current_database()`,
      )
    })
    expect(await call).toBe('disconnected')
    await passDeadline()
    dispatcher = await startDispatcherProcess(env)
    expect(await send(id)).toMatchObject({ status: 200, body: { outcome: 'unknown' } })
    expect(endpoint.requests).toHaveLength(1)
  })

  test('before the request: either it was not recorded and is sent now, or it is unknown and was not sent', async () => {
    const id = newId()
    let call: Promise<Answer | string> | undefined
    await whileLocked(async () => {
      call = send(id).catch(() => 'disconnected')
      await untilLocked(database.db.pool, 'AS request (id, organization_id, source_id')
      dispatcher.process.kill('SIGKILL')
      await dispatcher.process.exited
    })
    expect(await call).toBe('disconnected')
    expect(endpoint.requests).toEqual([])
    await passDeadline()
    dispatcher = await startDispatcherProcess(env)
    const { outcome } = (await send(id)).body
    expect(['accepted', 'unknown']).toContain(outcome)
    expect(endpoint.requests).toHaveLength(outcome === 'accepted' ? 1 : 0)
    expect((await send(id)).body.outcome).toBe(outcome)
    expect(endpoint.requests).toHaveLength(outcome === 'accepted' ? 1 : 0)
  })
})

describe('a dispatcher that gets SIGTERM', () => {
  test('is not ready first, and takes deliveries for SHUTDOWN_DELAY_SECONDS', async () => {
    const stopping = await startDispatcherProcess({ ...env, SHUTDOWN_DELAY_SECONDS: '3' })
    stopping.process.kill('SIGTERM')
    await waitUntil(async () => (await fetch(`${stopping.url}/readyz`)).status === 503)
    endpoint.answerWith({ status: 204 })
    expect(await send(newId(), stopping.url)).toMatchObject({ status: 200, body: { outcome: 'accepted' } })
    expect(await stopping.process.exited).toMatchObject({ code: 0 })
  })

  test('completes and records the requests in flight, and exits with status 0', async () => {
    const id = newId()
    const { promise, resolve } = Promise.withResolvers<void>()
    endpoint.answerWith(async () => {
      await promise
      return { status: 200, body: 'just in time' }
    })
    const call = send(id)
    await endpoint.waitForRequests(1)
    dispatcher.process.kill('SIGTERM')
    await waitUntil(() => dispatcher.process.jsonLines.some(({ msg }) => msg === 'service.stopping'))
    resolve()
    expect(await call).toMatchObject({ status: 200, body: { outcome: 'accepted', answer: 'just in time' } })
    expect(await dispatcher.process.exited).toMatchObject({ code: 0 })
    dispatcher = await startDispatcherProcess(env)
    expect((await send(id)).body).toMatchObject({ outcome: 'accepted', answer: 'just in time' })
    expect(endpoint.requests).toHaveLength(1)
  })
})
