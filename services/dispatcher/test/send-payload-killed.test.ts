import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { createDatabase, type Database, newId } from '@workflow-service/database'
import {
  createTestDatabase,
  type CustomerEndpoint,
  startCustomerEndpoint,
  type StartedProcess,
  type TestDatabase,
  waitUntil,
} from '@workflow-service/testkit'
import { type Answer, callDispatcher, sourceIn, startDispatcherProcess, testEnv } from './support/test-dispatcher.ts'

const organizationId = newId()
const sourceId = newId()
const payload = { order_id: 'B-2', total: 12 }

let database: TestDatabase
let db: Database
let endpoint: CustomerEndpoint
let env: Record<string, string>
let dispatcher: { url: string; process: StartedProcess }

beforeAll(async () => {
  database = await createTestDatabase()
  db = createDatabase({ url: database.url, applicationName: 'test', maxConnections: 5 })
  await db.prisma.organization.create({ data: { id: organizationId, name: 'Acme' } })
  endpoint = await startCustomerEndpoint()
  env = testEnv(database.url)
  dispatcher = await startDispatcherProcess(env)
  const path = `/internal/organizations/${organizationId}/webhook-sources/${sourceId}`
  await callDispatcher(dispatcher.url, 'PUT', path, sourceIn({ endpoint_url: endpoint.url }))
}, 120_000)
afterAll(async () => {
  await dispatcher.process.stop()
  await db.close()
  await database.drop()
  await endpoint.close()
})
beforeEach(() => {
  endpoint.requests.length = 0
  endpoint.answerWith({ status: 200, body: 'booked' })
})

const send = (id: string): Promise<Answer> =>
  callDispatcher(dispatcher.url, 'PUT', `/internal/deliveries/${id}`, {
    organization_id: organizationId,
    source_id: sourceId,
    payload,
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
    const connections = await db.pool.query(
      `SELECT FROM pg_stat_activity WHERE application_name = 'dispatcher' AND datname = current_database()`,
    )
    return connections.rows.length === 0
  })
  await db.pool.query(`UPDATE deliveries SET created_at = created_at - interval '1 minute' WHERE outcome = 'in_flight'`)
}

/** Runs the work while nobody else can write to the deliveries. */
async function whileLocked(work: () => Promise<void>): Promise<void> {
  const client = await db.pool.connect()
  try {
    await client.query('BEGIN')
    await client.query('LOCK TABLE deliveries IN SHARE ROW EXCLUSIVE MODE')
    await work()
  } finally {
    await client.query('ROLLBACK')
    client.release()
  }
}

/** Waits until a statement on the deliveries waits for the lock: one of whose first 1,024 characters this is a part. */
async function untilBlocked(statement: string): Promise<void> {
  await waitUntil(async () => {
    const blocked = await db.pool.query(
      `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1 AND datname = current_database()`,
      [`%${statement}%`],
    )
    return blocked.rows.length > 0
  })
}

describe('a dispatcher that is killed', () => {
  test('during the exchange: the outcome is unknown, and no second request is sent', async () => {
    const id = newId()
    endpoint.answerWith('hang')
    const call = send(id).catch(() => 'cut off')
    await endpoint.waitForRequests(1)
    await killAndRestart()
    expect(await call).toBe('cut off')
    endpoint.answerWith({ status: 200 })
    const answer = await send(id)
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'unknown', status: null } })
    expect((await send(id)).body).toEqual(answer.body)
    expect(endpoint.requests).toHaveLength(1)
  })

  test('after the exchange, before its outcome is recorded: the outcome is unknown, and no second request is sent', async () => {
    const id = newId()
    const { promise, resolve } = Promise.withResolvers<void>()
    endpoint.answerWith(async () => {
      await promise
      return { status: 200 }
    })
    const call = send(id).catch(() => 'cut off')
    await endpoint.waitForRequests(1)
    await whileLocked(async () => {
      resolve()
      await untilBlocked('UPDATE deliveries SET outcome = result.outcome')
      dispatcher.process.kill('SIGKILL')
      await dispatcher.process.exited
      await db.pool.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dispatcher' AND datname = current_database()`,
      )
    })
    expect(await call).toBe('cut off')
    await passDeadline()
    dispatcher = await startDispatcherProcess(env)
    expect(await send(id)).toMatchObject({ status: 200, body: { outcome: 'unknown' } })
    expect(endpoint.requests).toHaveLength(1)
  })

  test('before the exchange: either nothing was recorded and it is sent now, or it is unknown and was never sent', async () => {
    const id = newId()
    let call: Promise<Answer | string> | undefined
    await whileLocked(async () => {
      call = send(id).catch(() => 'cut off')
      await untilBlocked('AS request (id, organization_id, source_id')
      dispatcher.process.kill('SIGKILL')
      await dispatcher.process.exited
    })
    expect(await call).toBe('cut off')
    expect(endpoint.requests).toEqual([])
    await passDeadline()
    dispatcher = await startDispatcherProcess(env)
    const { outcome } = (await send(id)).body
    expect(['accepted', 'unknown']).toContain(outcome)
    expect(endpoint.requests).toHaveLength(outcome === 'accepted' ? 1 : 0)
    expect((await send(id)).body.outcome).toBe(outcome)
    expect(endpoint.requests).toHaveLength(outcome === 'accepted' ? 1 : 0)
  })

  test('at any moment: no delivery arrives twice, and what was said to be accepted has arrived', async () => {
    const ids = Array.from({ length: 5 }, newId)
    for (const [index, id] of ids.entries()) {
      const call = send(id).catch(() => undefined)
      // Spread over the few milliseconds that a delivery takes.
      await pause(index * 3)
      await killAndRestart()
      await call
    }
    const answers = await Promise.all(ids.map(send))
    const again = await Promise.all(ids.map(send))
    expect(again.map(({ body }) => body)).toEqual(answers.map(({ body }) => body))
    const arrivals = answers.map(({ body }) => ({
      outcome: body.outcome,
      arrived: endpoint.requests.filter(({ headers }) => headers['x-request-id'] === body.request_id).length,
    }))
    for (const arrival of arrivals) {
      expect([
        { outcome: 'accepted', arrived: 1 },
        { outcome: 'unknown', arrived: 1 },
        { outcome: 'unknown', arrived: 0 },
      ]).toContainEqual(arrival)
    }
    expect(endpoint.requests).toHaveLength(arrivals.filter(({ arrived }) => arrived === 1).length)
  }, 120_000)
})

describe('a dispatcher that is told to stop', () => {
  test('ends what is under way, records it, and leaves with status 0', async () => {
    const id = newId()
    const { promise, resolve } = Promise.withResolvers<void>()
    endpoint.answerWith(async () => {
      await promise
      return { status: 200, body: 'late but here' }
    })
    const call = send(id)
    await endpoint.waitForRequests(1)
    dispatcher.process.kill('SIGTERM')
    await waitUntil(() => dispatcher.process.jsonLines.some(({ msg }) => msg === 'stopping'))
    resolve()
    expect(await call).toMatchObject({ status: 200, body: { outcome: 'accepted', answer: 'late but here' } })
    expect(await dispatcher.process.exited).toMatchObject({ code: 0 })
    dispatcher = await startDispatcherProcess(env)
    expect((await send(id)).body).toMatchObject({ outcome: 'accepted', answer: 'late but here' })
    expect(endpoint.requests).toHaveLength(1)
  })
})
