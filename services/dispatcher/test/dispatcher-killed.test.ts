import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import {
  beginTransaction,
  type CustomerEndpoint,
  startCustomerEndpoint,
  type StartedProcess,
  untilLocked,
  waitUntil,
} from '@workflow-service/testkit'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import {
  callDispatcher,
  type InternalResponse,
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
  env = { ...testEnv(database.url), SHUTDOWN_DELAY_SECONDS: '3' }
  dispatcher = await startDispatcherProcess(env)
  const path = sourcePath(organizationId, sourceId)
  await callDispatcher(dispatcher.url, 'PUT', path, sourceIn({ endpoint_url: endpoint.url }))
})
beforeEach(() => {
  endpoint.requests.length = 0
  endpoint.answerWith({ status: 200, body: 'booked' })
})

const put = (id: string, body: object): Promise<InternalResponse> =>
  callDispatcher(dispatcher.url, 'PUT', `/internal/deliveries/${id}`, { organization_id: organizationId, ...body })
const send = (id: string) => put(id, { source_id: sourceId, payload: PAYLOAD })
const resend = (id: string, resendOf: string) => put(id, { resend_of: resendOf, sent_by: newId() })

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

/** Waits until the process takes no connection any more. */
const untilClosed = () => waitUntil(async () => !(await fetch(`${dispatcher.url}/healthz`).catch(() => undefined)))

/** Runs the work while no other connection can write to the table of deliveries. */
async function whileLocked(work: () => Promise<void>): Promise<void> {
  using client = await beginTransaction(database.db.pool)
  await client.query('LOCK TABLE deliveries IN SHARE ROW EXCLUSIVE MODE')
  await work()
}

describe('a dispatcher that is killed', () => {
  test('during requests: what has no answer is unknown, alone, sent again or together, and nothing is sent twice', async () => {
    const [earlier, alone, again, answered, hanging] = Array.from({ length: 5 }, newId)
    await send(earlier!)
    const deliveries = [answered, hanging].map((id) => ({
      delivery_id: id!,
      body: { organization_id: organizationId, source_id: sourceId, payload: { ...PAYLOAD, order_id: id! } },
    }))
    endpoint.requests.length = 0
    endpoint.answerWith(({ json }) =>
      (json as typeof PAYLOAD).order_id === answered ? { status: 200, body: 'booked' } : 'hang',
    )
    const calls = [send(alone!), resend(again!, earlier!)].map((call) => call.catch(() => 'disconnected'))
    const lines = sendTogether(dispatcher.url, deliveries)
    expect((await lines.next()).value).toMatchObject({ index: 0, status: 200, body: { outcome: 'accepted' } })
    await endpoint.waitForRequests(4)
    await killAndRestart()
    expect(await Promise.all(calls)).toEqual(['disconnected', 'disconnected'])
    // How a cut connection ends depends on the reader; no line comes.
    expect(await lines.next().catch(() => ({ done: true }))).toMatchObject({ done: true })
    endpoint.answerWith({ status: 200 })
    const response = await send(alone!)
    expect(response).toMatchObject({ status: 200, body: { outcome: 'unknown', status: null } })
    expect((await send(alone!)).body).toEqual(response.body)
    expect((await resend(again!, earlier!)).body).toMatchObject({ outcome: 'unknown', resend_of: earlier })
    expect(await sendAll(dispatcher.url, deliveries)).toMatchObject([
      { index: 0, body: { outcome: 'accepted', answer: 'booked' } },
      { index: 1, body: { outcome: 'unknown' } },
    ])
    expect(endpoint.requests).toHaveLength(4)
  })

  test('after a request, before its outcome is recorded, and before another: both are unknown, and none is sent again', async () => {
    const [sent, claimed] = [newId(), newId()]
    const { promise, resolve } = Promise.withResolvers<void>()
    endpoint.answerWith(async () => {
      await promise
      return { status: 200 }
    })
    const calls = [send(sent).catch(() => 'disconnected')]
    await endpoint.waitForRequests(1)
    await whileLocked(async () => {
      resolve()
      await untilLocked(database.db.pool, 'UPDATE deliveries SET outcome = result.outcome')
      calls.push(send(claimed).catch(() => 'disconnected'))
      await untilLocked(database.db.pool, 'AS request (id, organization_id, source_id')
      dispatcher.process.kill('SIGKILL')
      await dispatcher.process.exited
      // The outcome is not written. PostgreSQL has all of the claim, which it makes when the table is free.
      await database.db.pool.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dispatcher'
           AND datname = current_database() AND query LIKE '%UPDATE deliveries SET outcome = result.outcome%'`,
      )
    })
    expect(await Promise.all(calls)).toEqual(['disconnected', 'disconnected'])
    await passDeadline()
    dispatcher = await startDispatcherProcess(env)
    for (const id of [sent, claimed]) {
      expect(await send(id)).toMatchObject({ status: 200, body: { outcome: 'unknown' } })
    }
    expect(endpoint.requests).toHaveLength(1)
  })
})

describe('a dispatcher that gets SIGTERM', () => {
  test('takes deliveries for SHUTDOWN_DELAY_SECONDS, not ready, completes those in flight, and exits with status 0', async () => {
    const id = newId()
    const { promise, resolve } = Promise.withResolvers<void>()
    endpoint.answerWith(async (_request, index) => {
      if (index === 0) await promise
      return { status: 200, body: 'just in time' }
    })
    const call = send(id)
    await endpoint.waitForRequests(1)
    dispatcher.process.kill('SIGTERM')
    await waitUntil(async () => (await fetch(`${dispatcher.url}/readyz`)).status === 503)
    expect(await send(newId())).toMatchObject({ status: 200, body: { outcome: 'accepted' } })
    // Its port is closed: from here on, it only waits for what is in flight.
    await untilClosed()
    resolve()
    expect(await call).toMatchObject({ status: 200, body: { outcome: 'accepted', answer: 'just in time' } })
    expect(await dispatcher.process.exited).toMatchObject({ code: 0 })
    const recorded = { outcome: 'accepted', answer: 'just in time' }
    expect(await database.db.prisma.delivery.findUnique({ where: { id } })).toMatchObject(recorded)
    expect(endpoint.requests).toHaveLength(2)
  })

  test('and SIGINT at once, as from a terminal and npm, completes those in flight; one that follows later ends it', async () => {
    const answer = Promise.withResolvers<{ status: number }>()
    endpoint.answerWith(({ json }) => ((json as typeof PAYLOAD).order_id === 'slow' ? answer.promise : 'hang'))
    for (const [order_id, isLater, outcome, code] of [
      ['slow', false, 'accepted', 0],
      ['hanging', true, undefined, 1],
    ] as const) {
      dispatcher = await startDispatcherProcess({ ...env, SHUTDOWN_DELAY_SECONDS: '0' })
      endpoint.requests.length = 0
      const payload = { ...PAYLOAD, order_id }
      const call = put(newId(), { source_id: sourceId, payload }).catch(() => undefined)
      await endpoint.waitForRequests(1)
      dispatcher.process.kill('SIGTERM')
      if (isLater) {
        // By then, the process has got the first signal, from which it counts the time.
        await untilClosed()
        await sleep(1_000)
      }
      dispatcher.process.kill('SIGINT')
      await untilClosed()
      answer.resolve({ status: 200 })
      expect((await call)?.body.outcome).toBe(outcome)
      expect(await dispatcher.process.exited).toMatchObject({ code })
    }
  })
})
