import { beforeAll, describe, expect, test } from '@jest/globals'
import { formatActor } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { freePort, startCustomerEndpoint, waitUntil } from '@workflow-service/testkit'
import { type Answer, callDispatcher, refusal, sourceIn } from './support/test-dispatcher.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const dispatcher = useDispatcher({ slotWaitMs: 100 })
let sourceId: string

beforeAll(async () => {
  sourceId = await dispatcher.saveSource({ signing_secret: 'the signing secret of this test' })
})

const send = (id: string, change: Record<string, unknown> = {}, url = dispatcher.url): Promise<Answer> =>
  dispatcher.send(id, { source_id: sourceId, ...change }, url)

const readMetrics = async (url: string): Promise<string> => await (await fetch(`${url}/metrics`)).text()

/** Waits until so many calls wait for a slot. */
const untilWaiting = (url: string, count: number) =>
  waitUntil(async () =>
    (await readMetrics(url)).includes(`\nwebhook_deliveries_waiting{service="dispatcher"} ${count}\n`),
  )

/** Creates an answer that waits until `open` is called. */
function createGate(): { open: () => void; answer: () => Promise<{ status: number }> } {
  const { promise, resolve } = Promise.withResolvers<{ status: number }>()
  return { open: () => resolve({ status: 200 }), answer: () => promise }
}

/** Starts a dispatcher whose only slot a payload has until `open` is called. */
async function startFull(...options: Parameters<typeof dispatcher.startAnother>) {
  const narrow = await dispatcher.startAnother(...options)
  const { open, answer } = createGate()
  dispatcher.endpoint.answerWith(answer)
  const slow = send(newId(), {}, narrow.url)
  await dispatcher.endpoint.waitForRequests(1)
  return { narrow, open, slow }
}

describe('limits', () => {
  test('at the limit of a source the answer is 503, nothing is recorded, and other sources are not affected', async () => {
    const narrow = await dispatcher.startAnother({}, { maxInFlightPerSource: 2 })
    const { open, answer } = createGate()
    dispatcher.endpoint.answerWith(answer)
    const slow = [send(newId(), {}, narrow.url), send(newId(), {}, narrow.url)]
    await dispatcher.endpoint.waitForRequests(2)
    const id = newId()
    const beyond = await send(id, {}, narrow.url)
    expect(beyond).toMatchObject({
      status: 503,
      body: {
        error: {
          code: 'service_unavailable',
          message: expect.stringMatching(/^2 requests to this .* Repeat the call with the same id\.$/),
        },
      },
    })
    expect(await dispatcher.isRecorded(id)).toBe(false)
    const others = await startCustomerEndpoint()
    const otherSource = await dispatcher.saveSource({ endpoint_url: others.url })
    expect((await send(newId(), { source_id: otherSource }, narrow.url)).body.outcome).toBe('accepted')
    await others.close()
    const edited = await callDispatcher(
      narrow.url,
      'PUT',
      dispatcher.sourcePath(sourceId),
      sourceIn({ endpoint_url: `http://127.0.0.1:${await freePort()}/`, signing_secret: 'another secret' }),
    )
    expect(edited.body.error.reason).toBe('unreachable')
    open()
    for (const sent of await Promise.all(slow)) expect(sent.body.outcome).toBe('accepted')
    expect((await send(id, {}, narrow.url)).body.outcome).toBe('accepted')
    expect(dispatcher.endpoint.requests).toHaveLength(3)
  })

  test('saves of one organization that wait for each other leave the connections to payloads', async () => {
    const { db, organizationId } = dispatcher
    const lock = await db.pool.connect()
    await lock.query('SELECT pg_advisory_lock(hashtextextended($1, 0))', [`quotas of ${organizationId}`])
    const narrow = await dispatcher.startAnother({}, { databasePoolSize: 5 })
    const headers = { 'x-actor': formatActor({ user_id: newId(), name: 'Ada', address: null }) }
    const saves = Array.from({ length: 10 }, (_, n) => {
      const path = `${dispatcher.sourcePath(newId())}?verify=never`
      return callDispatcher(narrow.url, 'PUT', path, sourceIn({ name: `Many ${n}` }), headers)
    })
    await waitUntil(async () => {
      const { rows } = await db.pool.query(
        `SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database
           WHERE datname = current_database())`,
      )
      return rows.length === 2
    })
    expect((await send(newId(), {}, narrow.url)).body.outcome).toBe('accepted')
    lock.release(true)
    for (const saved of await Promise.all(saves)) expect(saved.status).toBe(201)
  })

  test('a delivery that got no slot in time keeps its place before later ones when it is asked for again', async () => {
    // The calls below have to be made within this time.
    const { narrow, open, slow } = await startFull({ slotWaitMs: 2_500 }, { maxInFlightPerSource: 1 })
    const [first, later] = [newId(), newId()]
    expect((await send(first, {}, narrow.url)).status).toBe(503)
    const calls = [send(later, {}, narrow.url)]
    await untilWaiting(narrow.url, 1)
    calls.push(send(first, {}, narrow.url))
    await untilWaiting(narrow.url, 2)
    open()
    const [laterSent, firstSent] = await Promise.all(calls)
    await slow
    expect([laterSent?.body.outcome, firstSent?.body.outcome]).toEqual(['accepted', 'accepted'])
    const sentInOrder = dispatcher.endpoint.requests.map(({ headers }) => headers['x-request-id'])
    expect(sentInOrder.slice(1)).toEqual([firstSent?.body.request_id, laterSent?.body.request_id])
  })

  test('at the limit of the process the answer is 503, nothing is recorded, and the call may be repeated', async () => {
    const { narrow, open, slow } = await startFull({}, { maxInFlight: 1 })
    const id = newId()
    const beyond = await send(id, {}, narrow.url)
    expect(beyond).toMatchObject(refusal(503, 'service_unavailable'))
    expect(beyond.headers.get('retry-after')).toBe('1')
    expect(await dispatcher.isRecorded(id)).toBe(false)
    open()
    await slow
    expect((await send(id, {}, narrow.url)).body.outcome).toBe('accepted')
  })

  test('a stopping dispatcher answers 503 to the calls that wait for a slot, and completes the others', async () => {
    const { narrow: stopping, open, slow } = await startFull({ slotWaitMs: 20_000 }, { maxInFlightPerSource: 1 })
    const waiting = send(newId(), {}, stopping.url)
    await untilWaiting(stopping.url, 1)
    const stopped = stopping.stop()
    expect((await waiting).status).toBe(503)
    open()
    expect((await slow).body.outcome).toBe('accepted')
    await stopped
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })
})

const suspend = (isSuspended: boolean): Promise<unknown> =>
  dispatcher.db.prisma.organization.update({ where: { id: dispatcher.organizationId }, data: { isSuspended } })

describe('a suspended organization', () => {
  test('gets no payload, also not again: 403, nothing is recorded, and the same id is sent after the suspension', async () => {
    const sent = newId()
    await send(sent)
    dispatcher.endpoint.requests.length = 0
    await suspend(true)
    const id = newId()
    const again = { organization_id: dispatcher.organizationId, resend_of: sent, sent_by: null }
    const resent = await dispatcher.call('PUT', `/internal/deliveries/${id}`, again)
    for (const answer of [await send(id), resent]) {
      expect(answer).toMatchObject(refusal(403, 'organization_suspended'))
    }
    expect(await dispatcher.isRecorded(id)).toBe(false)
    expect((await send(sent)).body.outcome).toBe('accepted')
    expect(dispatcher.endpoint.requests).toEqual([])
    await suspend(false)
    expect((await send(id)).body.outcome).toBe('accepted')
  })

  test('can still save and verify its sources: the application edits them', async () => {
    await suspend(true)
    await dispatcher.saveSource({ description: 'edited' })
    await suspend(false)
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })
})

describe('the metrics', () => {
  test('count and time deliveries by kind and outcome, and show the requests in flight', async () => {
    const another = await dispatcher.startAnother()
    const { open, answer } = createGate()
    dispatcher.endpoint.answerWith(answer)
    const call = send(newId(), {}, another.url)
    await dispatcher.endpoint.waitForRequests(1)
    expect(await readMetrics(another.url)).toMatch(/^webhook_deliveries_in_flight\{service="dispatcher"\} 1$/m)
    open()
    await call
    await send(newId(), { payload: {} }, another.url)
    const text = await readMetrics(another.url)
    expect(text).toMatch(/^webhook_deliveries_total\{kind="payload",outcome="accepted",service="dispatcher"\} 1$/m)
    expect(text).toMatch(/^webhook_deliveries_total\{kind="payload",outcome="invalid",service="dispatcher"\} 1$/m)
    expect(text).toMatch(/^webhook_delivery_duration_seconds_count\{.*outcome="accepted".*\} 1$/m)
    expect(text).toMatch(/^webhook_deliveries_in_flight\{service="dispatcher"\} 0$/m)
    expect(text).not.toContain(sourceId)
  })
})
