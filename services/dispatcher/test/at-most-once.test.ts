import { beforeAll, describe, expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { type Answer, PAYLOAD, sourcePath } from './support/test-dispatcher.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const dispatcher = useDispatcher()
let sourceId: string

beforeAll(async () => {
  sourceId = await dispatcher.saveSource({ signing_secret: 'the signing secret of this test' })
})

const deliveryBody = (change: Record<string, unknown> = {}): Record<string, unknown> => ({
  organization_id: dispatcher.organizationId,
  source_id: sourceId,
  payload: PAYLOAD,
  ...change,
})
const send = (id: string, change: Record<string, unknown> = {}, url = dispatcher.url): Promise<Answer> =>
  dispatcher.send(id, { source_id: sourceId, ...change }, url)

/** Records a delivery in flight, as another dispatcher would. */
async function recordInFlight(ageMs: number): Promise<string> {
  const id = newId()
  await dispatcher.db.prisma.delivery.create({
    data: {
      id,
      organizationId: dispatcher.organizationId,
      sourceId,
      kind: 'payload',
      outcome: 'in_flight',
      requestBody: PAYLOAD,
      createdAt: new Date(Date.now() - ageMs),
    },
  })
  return id
}

describe('at most once', () => {
  test('a repeated call answers the recorded delivery and sends nothing', async () => {
    dispatcher.endpoint.answerWith((_request, index) => ({ status: 500 + index }))
    const id = newId()
    const first = await send(id)
    expect(first.body).toMatchObject({ outcome: 'rejected', status: 500 })
    for (let call = 0; call < 3; call += 1) expect(await send(id)).toMatchObject({ status: 200, body: first.body })
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })

  test('a repeated -0 is the same payload, because JSON.stringify makes it 0', async () => {
    const id = newId()
    const body = JSON.stringify(deliveryBody({ payload: { order_id: 'x', total: 0 } })).replace(
      '"total":0',
      '"total":-0',
    )
    for (let call = 0; call < 2; call += 1) {
      expect((await dispatcher.call('PUT', `/internal/deliveries/${id}`, body)).body.outcome).toBe('accepted')
    }
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })

  test('of many concurrent calls at two dispatchers one sends, and all get the same answer', async () => {
    const other = await dispatcher.startAnother()
    const id = newId()
    dispatcher.endpoint.answerWith({ body: 'once', delayMs: 200 })
    const calls = Array.from({ length: 20 }, (_, index) => send(id, {}, index % 2 === 0 ? dispatcher.url : other.url))
    const answers = await Promise.all(calls)
    expect(dispatcher.endpoint.requests).toHaveLength(1)
    for (const answer of answers)
      expect(answer).toMatchObject({ status: 200, body: { outcome: 'accepted', answer: 'once' } })
  })

  test('the outcome is recorded if the caller disconnects', async () => {
    const id = newId()
    const caller = new AbortController()
    dispatcher.endpoint.answerWith(async () => {
      caller.abort()
      return { status: 200, body: 'arrived' }
    })
    const call = fetch(`${dispatcher.url}/internal/deliveries/${id}`, {
      method: 'PUT',
      headers: {
        authorization: `Bearer ${dispatcher.config.internalApiTokens[0]}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify(deliveryBody()),
      signal: caller.signal,
    })
    await expect(call).rejects.toThrow('aborted')
    expect((await send(id)).body).toMatchObject({ outcome: 'accepted', answer: 'arrived' })
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })

  describe('of a delivery that another dispatcher recorded', () => {
    test('the outcome becomes unknown past the deadline of 40 s, and nothing is sent', async () => {
      const id = await recordInFlight(41_000)
      const answer = await send(id)
      expect(answer.body).toMatchObject({
        outcome: 'unknown',
        status: null,
        reason: expect.stringContaining('interrupted'),
      })
      expect((await send(id)).body).toEqual(answer.body)
      expect(dispatcher.endpoint.requests).toEqual([])
    })

    test('a call waits for the outcome until the deadline', async () => {
      const waiting = await dispatcher.startAnother({ deliveryDeadlineMs: 1_000 })
      const startedMs = performance.now()
      expect((await send(await recordInFlight(0), {}, waiting.url)).body.outcome).toBe('unknown')
      expect(performance.now() - startedMs).toBeGreaterThan(900)
    })

    test('a call gets the outcome that is recorded while it waits', async () => {
      const id = await recordInFlight(0)
      const call = send(id)
      const data = { outcome: 'accepted', status: 200, finishedAt: new Date() }
      await dispatcher.db.prisma.delivery.update({ where: { id }, data })
      expect((await call).body).toMatchObject({ outcome: 'accepted', status: 200 })
      expect(dispatcher.endpoint.requests).toEqual([])
    })
  })
})

describe('409 idempotency_conflict', () => {
  test.each([
    ['another payload', () => ({ payload: { order_id: 'C-3', total: 12 } })],
    ['another source', async () => ({ source_id: await dispatcher.saveSource() })],
  ])('the id was used for %s', async (_what, change) => {
    const id = newId()
    await send(id)
    const different = await change()
    dispatcher.endpoint.requests.length = 0
    expect(await send(id, different)).toMatchObject({ status: 409, body: { error: { code: 'idempotency_conflict' } } })
    expect(dispatcher.endpoint.requests).toEqual([])
  })

  test('the id was used by another organization, about which nothing is revealed', async () => {
    const id = newId()
    await send(id)
    const other = await dispatcher.createOrganization()
    const otherSource = newId()
    const path = `${sourcePath(other, otherSource)}?verify=never`
    await dispatcher.call('PUT', path, {
      name: 'Other',
      description: '',
      endpoint_url: dispatcher.endpoint.url,
      example_request_body: PAYLOAD,
    })
    dispatcher.endpoint.requests.length = 0
    const answer = await send(id, { organization_id: other, source_id: otherSource })
    expect(answer).toMatchObject({ status: 409, body: { error: { code: 'idempotency_conflict' } } })
    expect(JSON.stringify(answer.body)).not.toContain(sourceId)
    expect(dispatcher.endpoint.requests).toEqual([])
  })

  test('the id belongs to a verification request', async () => {
    const log = await dispatcher.call('GET', `${dispatcher.sourcePath(sourceId)}/deliveries?kind=verification`)
    expect((await send(log.body.data[0]?.id ?? '')).body.error.code).toBe('idempotency_conflict')
  })
})

describe('409 lease_lost', () => {
  test.each([2, 4])("epoch %i is not the session's 3: nothing is sent and nothing recorded", async (epoch) => {
    const id = newId()
    const lease = { session_id: await dispatcher.createSession(3), epoch }
    expect(await send(id, { lease })).toMatchObject({ status: 409, body: { error: { code: 'lease_lost' } } })
    expect(dispatcher.endpoint.requests).toEqual([])
    expect(await dispatcher.isRecorded(id)).toBe(false)
  })

  test('for an unknown session and one of another organization', async () => {
    const other = await dispatcher.createOrganization()
    for (const sessionId of [newId(), await dispatcher.createSession(1, other)]) {
      expect((await send(newId(), { lease: { session_id: sessionId, epoch: 1 } })).body.error.code).toBe('lease_lost')
    }
    expect(dispatcher.endpoint.requests).toEqual([])
  })

  test('the next lease gets the delivery that the previous one sent', async () => {
    const id = newId()
    const sessionId = await dispatcher.createSession(1)
    const first = await send(id, { lease: { session_id: sessionId, epoch: 1 } })
    await dispatcher.db.prisma.session.update({ where: { id: sessionId }, data: { leaseEpoch: 2 } })
    expect((await send(id, { lease: { session_id: sessionId, epoch: 2 } })).body).toEqual(first.body)
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })
})
