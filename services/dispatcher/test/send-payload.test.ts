import { beforeAll, describe, expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { freePort, startCustomerEndpoint, startRawEndpoint, waitUntil } from '@workflow-service/testkit'
import { checkServiceToken } from '@workflow-service/webhook-token'
import { type Answer, callDispatcher, PAYLOAD, sourceIn, sourcePath } from './support/test-dispatcher.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const SECRET = 'the signing secret of this test'

const dispatcher = useDispatcher({ slotWaitMs: 100 })
let sourceId: string

beforeAll(async () => {
  sourceId = await dispatcher.saveSource({ signing_secret: SECRET })
})

const deliveryBody = (change: Record<string, unknown> = {}): Record<string, unknown> => ({
  organization_id: dispatcher.organizationId,
  source_id: sourceId,
  payload: PAYLOAD,
  ...change,
})
const send = (id: string, change: Record<string, unknown> = {}, url = dispatcher.url): Promise<Answer> =>
  dispatcher.send(id, { source_id: sourceId, ...change }, url)

/** A session whose current lease has this epoch. */
async function openSession(leaseEpoch: number, organizationId = dispatcher.organizationId): Promise<string> {
  const id = newId()
  await dispatcher.db.prisma.session.create({ data: { id, organizationId, leaseEpoch } })
  return id
}

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

/** Creates an answer that waits until `open` is called. */
function createGate(): { open: () => void; answer: () => Promise<{ status: number }> } {
  const { promise, resolve } = Promise.withResolvers<{ status: number }>()
  return { open: () => resolve({ status: 200 }), answer: () => promise }
}

/** Reads the log, because a repeated call may be answered from memory. */
const newestEntry = async (source: string): Promise<unknown> =>
  (await dispatcher.call('GET', `${dispatcher.sourcePath(source)}/deliveries?limit=1`)).body.data[0]

const isRecorded = async (id: string): Promise<boolean> =>
  (await dispatcher.db.prisma.delivery.findUnique({ where: { id } })) !== null

describe('200', () => {
  test('sends the payload unchanged with a new token, and answers what the endpoint answered', async () => {
    dispatcher.endpoint.answerWith({ status: 201, body: 'Order 17 booked.' })
    const id = newId()
    const [runId, sessionId] = [newId(), await openSession(4)]
    const lease = { session_id: sessionId, epoch: 4 }
    const answer = await callDispatcher(
      dispatcher.url,
      'PUT',
      `/internal/deliveries/${id.toUpperCase()}`,
      deliveryBody({ run_id: runId, lease }),
      { 'x-request-id': 'start-42' },
    )
    const [request, ...others] = dispatcher.endpoint.requests
    expect(others).toEqual([])
    expect(request).toMatchObject({ method: 'POST', json: PAYLOAD })
    expect(request?.headers).toMatchObject({ 'content-type': 'application/json', 'x-request-id': 'start-42' })
    expect(checkServiceToken(request?.headers['x-service-token'], SECRET)).toMatchObject({ ok: true })
    expect(answer).toMatchObject({
      status: 200,
      body: {
        id,
        organization_id: dispatcher.organizationId,
        source_id: sourceId,
        kind: 'payload',
        outcome: 'accepted',
        status: 201,
        reason: null,
        mismatches: null,
        answer: 'Order 17 booked.',
        request_body: PAYLOAD,
        run_id: runId,
        session_id: sessionId,
        request_id: 'start-42',
      },
    })
    const log = await dispatcher.call('GET', `${dispatcher.sourcePath(sourceId)}/deliveries?limit=1`)
    expect(log.body.data).toEqual([answer.body])
  })

  test.each([
    [299, 'accepted'],
    [301, 'rejected'],
    [401, 'rejected'],
    [429, 'rejected'],
    [503, 'rejected'],
  ])('status %i is %s, after one request', async (status, outcome) => {
    dispatcher.endpoint.answerWith({ status, headers: { 'retry-after': '0', location: '/again' } })
    const answer = await send(newId())
    expect(answer).toMatchObject({ status: 200, body: { outcome, status, answer: null } })
    expect(answer.body.reason === null).toBe(outcome === 'accepted')
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })

  test.each(['000', '099', '600', '999'])('the unusual status %s is rejected and recorded', async (status) => {
    const odd = await startRawEndpoint(
      (socket) => void socket.end(`HTTP/1.1 ${status} Odd\r\ncontent-length: 0\r\n\r\n`),
    )
    const source = await dispatcher.saveSource({ endpoint_url: odd.url }, 'never')
    const id = newId()
    const answer = await send(id, { source_id: source })
    expect(answer.body).toMatchObject({ outcome: 'rejected', status: Number(status) })
    expect(await newestEntry(source)).toEqual(answer.body)
    await odd.close()
  })

  test('an unused port is unreachable', async () => {
    const nowhere = `http://127.0.0.1:${await freePort()}/`
    const unused = await dispatcher.saveSource({ endpoint_url: nowhere }, 'never')
    expect((await send(newId(), { source_id: unused })).body).toMatchObject({
      outcome: 'unreachable',
      status: null,
      reason: 'The endpoint refuses connections.',
    })
  })

  test('run_id and lease may be null or absent', async () => {
    for (const change of [{}, { run_id: null, lease: null }]) {
      expect((await send(newId(), change)).body).toMatchObject({ outcome: 'accepted', run_id: null, session_id: null })
    }
  })

  test('without a secret, no token is sent', async () => {
    const plain = await dispatcher.saveSource()
    dispatcher.endpoint.requests.length = 0
    await send(newId(), { source_id: plain })
    expect(dispatcher.endpoint.requests[0]?.headers).not.toHaveProperty('x-service-token')
  })

  test('a changed secret signs the next request', async () => {
    const id = await dispatcher.saveSource({ signing_secret: 'secret before' })
    await dispatcher.saveSource({ signing_secret: 'secret after' }, 'always', id)
    dispatcher.endpoint.requests.length = 0
    await send(newId(), { source_id: id })
    const token = dispatcher.endpoint.requests[0]?.headers['x-service-token']
    expect(checkServiceToken(token, 'secret after')).toMatchObject({ ok: true })
  })

  test('a secret or token that the endpoint repeats does not appear in the log', async () => {
    dispatcher.endpoint.answerWith((request) => ({
      body: `${SECRET} ${String(request.headers['x-service-token'])} ok`,
    }))
    expect((await send(newId())).body.answer).toBe('[hidden] [hidden] ok')
  })

  test('an answer that redaction makes longer is truncated to 300 characters', async () => {
    const short = await dispatcher.saveSource({ signing_secret: 'abcdef' })
    dispatcher.endpoint.answerWith({ body: 'abcdef'.repeat(50) })
    const id = newId()
    const answer = await send(id, { source_id: short })
    expect(answer.body.answer).toHaveLength(300)
    expect(await newestEntry(short)).toEqual(answer.body)
  })
})

describe('payloads against the example', () => {
  test('a payload that does not follow the example is invalid with an error per field, and not sent', async () => {
    const id = newId()
    const answer = await send(id, { payload: { order_id: 7, extra: true } })
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'invalid', status: null } })
    expect(answer.body.mismatches?.map(({ field, code }) => [field, code])).toEqual([
      ['order_id', 'string_type'],
      ['total', 'missing'],
      ['extra', 'extra_forbidden'],
    ])
    expect(answer.body.reason).toMatch(/order_id: must be a string.*total: is required/)
    expect(dispatcher.endpoint.requests).toEqual([])
    expect((await send(id, { payload: { order_id: 7, extra: true } })).body).toEqual(answer.body)
  })

  test('the type of a verification request is invalid at the top level, also if the example has a type', async () => {
    const typed = await dispatcher.saveSource({
      endpoint_url: dispatcher.endpoint.url,
      example_request_body: { type: 'order', data: { type: 'x' } },
    })
    dispatcher.endpoint.requests.length = 0
    const verification = 'service.webhook.verification'
    const forged = await send(newId(), { source_id: typed, payload: { type: verification, data: { type: 'x' } } })
    expect(forged.body).toMatchObject({ outcome: 'invalid', mismatches: [{ field: 'type', code: 'reserved_value' }] })
    expect(dispatcher.endpoint.requests).toEqual([])
    const nested = await send(newId(), { source_id: typed, payload: { type: 'order', data: { type: verification } } })
    expect(nested.body.outcome).toBe('accepted')
  })

  test.each([
    ['NUL', 'a\u0000b'],
    ['a lone surrogate', 'a\ud800b'],
    ['a line break', 'a\nb'],
    ['200,000 characters', 'x'.repeat(200_000)],
  ])('an unknown field whose name has %s is invalid and recorded', async (_what, name) => {
    const id = newId()
    const answer = await send(id, { payload: { ...PAYLOAD, [name]: 1 } })
    expect(answer.body).toMatchObject({ outcome: 'invalid', mismatches: [{ code: expect.any(String) }] })
    expect(answer.body.reason?.length).toBeLessThanOrEqual(2_000)
    expect(await newestEntry(sourceId)).toEqual(answer.body)
    expect(dispatcher.endpoint.requests).toEqual([])
  })

  test('a payload of more than 256 KiB is invalid', async () => {
    const large = { order_id: 'x'.repeat(256 * 1024), total: 1 }
    expect((await send(newId(), { payload: large })).body).toMatchObject({
      outcome: 'invalid',
      mismatches: [{ field: 'body', code: 'too_large' }],
    })
  })

  test('a payload of nearly 256 KiB arrives completely', async () => {
    const large = { order_id: 'é'.repeat(131_000), total: 1 }
    expect((await send(newId(), { payload: large })).body.outcome).toBe('accepted')
    expect(dispatcher.endpoint.requests[0]?.json).toEqual(large)
  })
})

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
    const lease = { session_id: await openSession(3), epoch }
    expect(await send(id, { lease })).toMatchObject({ status: 409, body: { error: { code: 'lease_lost' } } })
    expect(dispatcher.endpoint.requests).toEqual([])
    expect(await isRecorded(id)).toBe(false)
  })

  test('for an unknown session and one of another organization', async () => {
    const other = await dispatcher.createOrganization()
    for (const sessionId of [newId(), await openSession(1, other)]) {
      expect((await send(newId(), { lease: { session_id: sessionId, epoch: 1 } })).body.error.code).toBe('lease_lost')
    }
    expect(dispatcher.endpoint.requests).toEqual([])
  })

  test('the next lease gets the delivery that the previous one sent', async () => {
    const id = newId()
    const sessionId = await openSession(1)
    const first = await send(id, { lease: { session_id: sessionId, epoch: 1 } })
    await dispatcher.db.prisma.session.update({ where: { id: sessionId }, data: { leaseEpoch: 2 } })
    expect((await send(id, { lease: { session_id: sessionId, epoch: 2 } })).body).toEqual(first.body)
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })
})

describe('404', () => {
  test('for an unknown or deleted source and one of another organization, nothing is recorded', async () => {
    const deleted = await dispatcher.saveSource()
    await dispatcher.call('DELETE', dispatcher.sourcePath(deleted))
    dispatcher.endpoint.requests.length = 0
    for (const change of [{ source_id: newId() }, { source_id: deleted }, { organization_id: newId() }]) {
      const id = newId()
      expect(await send(id, change)).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
      expect(await isRecorded(id)).toBe(false)
    }
    expect(dispatcher.endpoint.requests).toEqual([])
  })

  test('a recorded delivery is answered also after its source was deleted', async () => {
    const shortLived = await dispatcher.saveSource()
    const id = newId()
    const first = await send(id, { source_id: shortLived })
    await dispatcher.call('DELETE', dispatcher.sourcePath(shortLived))
    expect((await send(id, { source_id: shortLived })).body).toEqual(first.body)
  })
})

describe('422', () => {
  test.each([
    ['no payload', { payload: undefined }, 'payload', 'missing'],
    ['a list as payload', { payload: [] }, 'payload', 'dict_type'],
    ['an invalid id', { source_id: 'x' }, 'source_id', 'uuid_parsing'],
    ['a lease without epoch', { lease: { session_id: newId() } }, 'lease.epoch', 'missing'],
    ['an epoch that is too large', { lease: { session_id: newId(), epoch: 1e20 } }, 'lease.epoch', 'less_than_equal'],
    ['an unknown field', { extra: 1 }, 'extra', 'extra_forbidden'],
  ])('refuses %s', async (_what, change, field, code) => {
    expect(await send(newId(), change)).toMatchObject({
      status: 422,
      body: { error: { code: 'validation_error', details: [{ field, code }] } },
    })
  })

  test('refuses a payload that nests too deep, even 100,000 levels', async () => {
    for (const levels of [40, 100_000]) {
      const body = JSON.stringify(deliveryBody()).replace(
        '"total":12',
        `"total":${'['.repeat(levels)}${']'.repeat(levels)}`,
      )
      const answer = await dispatcher.call('PUT', `/internal/deliveries/${newId()}`, body)
      expect(answer).toMatchObject({
        status: 422,
        body: { error: { details: [{ field: 'payload', code: 'too_deep' }] } },
      })
    }
  })
})

describe('limits', () => {
  test('at the limit of a source, a delivery is refused and logged; other sources are not affected', async () => {
    const narrow = await dispatcher.startAnother({}, { maxInFlightPerSource: 2 })
    const { open, answer } = createGate()
    dispatcher.endpoint.answerWith(answer)
    const slow = [send(newId(), {}, narrow.url), send(newId(), {}, narrow.url)]
    await dispatcher.endpoint.waitForRequests(2)
    const id = newId()
    const beyond = await send(id, {}, narrow.url)
    expect(beyond).toMatchObject({
      status: 200,
      body: { outcome: 'refused', reason: expect.stringContaining('2 deliveries to this source are in flight') },
    })
    const others = await startCustomerEndpoint()
    const otherSource = await dispatcher.saveSource({ endpoint_url: others.url })
    expect((await send(newId(), { source_id: otherSource }, narrow.url)).body.outcome).toBe('accepted')
    await others.close()
    const edited = await callDispatcher(narrow.url, 'PUT', dispatcher.sourcePath(sourceId), {
      ...sourceIn({ endpoint_url: `http://127.0.0.1:${await freePort()}/` }),
    })
    expect(edited.body.error.reason).toBe('unreachable')
    open()
    for (const sent of await Promise.all(slow)) expect(sent.body.outcome).toBe('accepted')
    expect((await send(id, {}, narrow.url)).body).toEqual(beyond.body)
    expect(dispatcher.endpoint.requests).toHaveLength(2)
  })

  test('a delivery waits for a slot that becomes free in time', async () => {
    const narrow = await dispatcher.startAnother({ slotWaitMs: 20_000 }, { maxInFlightPerSource: 1 })
    const { open, answer } = createGate()
    dispatcher.endpoint.answerWith(answer)
    const calls = Array.from({ length: 5 }, () => send(newId(), {}, narrow.url))
    await dispatcher.endpoint.waitForRequests(1)
    open()
    for (const sent of await Promise.all(calls)) expect(sent.body.outcome).toBe('accepted')
    expect(dispatcher.endpoint.requests).toHaveLength(5)
  })

  test('at the limit of the process the answer is 503, nothing is recorded, and the call may be repeated', async () => {
    const narrow = await dispatcher.startAnother({}, { maxInFlight: 1 })
    const { open, answer } = createGate()
    dispatcher.endpoint.answerWith(answer)
    const slow = send(newId(), {}, narrow.url)
    await dispatcher.endpoint.waitForRequests(1)
    const id = newId()
    const beyond = await send(id, {}, narrow.url)
    expect(beyond).toMatchObject({ status: 503, body: { error: { code: 'service_unavailable' } } })
    expect(beyond.headers.get('retry-after')).toBe('1')
    expect(await isRecorded(id)).toBe(false)
    open()
    await slow
    expect((await send(id, {}, narrow.url)).body.outcome).toBe('accepted')
  })

  test('three hundred slow endpoints at once do not delay a fast one', async () => {
    const { open, answer } = createGate()
    const slowEndpoint = await startCustomerEndpoint({ answer })
    const slowSources = await Promise.all(
      Array.from({ length: 30 }, () => dispatcher.saveSource({ endpoint_url: slowEndpoint.url }, 'never')),
    )
    const slow = Array.from({ length: 300 }, (_, index) =>
      send(newId(), { source_id: slowSources[index % slowSources.length] }),
    )
    await slowEndpoint.waitForRequests(300, 20_000)
    const before = dispatcher.endpoint.requests.length
    const fast = await Promise.all(Array.from({ length: 20 }, () => send(newId())))
    for (const sent of fast) expect(sent.body.outcome).toBe('accepted')
    expect(dispatcher.endpoint.requests).toHaveLength(before + 20)
    open()
    for (const sent of await Promise.all(slow)) expect(sent.body.outcome).toBe('accepted')
    await slowEndpoint.close()
  })
})

describe('the metrics', () => {
  test('count and time deliveries by kind and outcome, and show the requests in flight', async () => {
    const another = await dispatcher.startAnother()
    const { open, answer } = createGate()
    dispatcher.endpoint.answerWith(answer)
    const call = send(newId(), {}, another.url)
    await dispatcher.endpoint.waitForRequests(1)
    const read = async (): Promise<string> => (await fetch(`${another.url}/metrics`)).text()
    expect(await read()).toMatch(/^webhook_deliveries_in_flight\{service="dispatcher"\} 1$/m)
    open()
    await call
    await send(newId(), { payload: {} }, another.url)
    const text = await read()
    expect(text).toMatch(/^webhook_deliveries_total\{kind="payload",outcome="accepted",service="dispatcher"\} 1$/m)
    expect(text).toMatch(/^webhook_deliveries_total\{kind="payload",outcome="invalid",service="dispatcher"\} 1$/m)
    expect(text).toMatch(/^webhook_delivery_duration_seconds_count\{.*outcome="accepted".*\} 1$/m)
    expect(text).toMatch(/^webhook_deliveries_in_flight\{service="dispatcher"\} 0$/m)
    expect(text).not.toContain(sourceId)
  })
})

describe('the signing secret', () => {
  test('that no key decrypts: nothing is sent, and an error is logged', async () => {
    const keyless = await dispatcher.startAnother({}, { secretsKeys: [Buffer.alloc(32, 7).toString('base64')] })
    const answer = await send(newId(), {}, keyless.url)
    expect(answer.body).toMatchObject({ outcome: 'refused', reason: expect.stringContaining('signing secret') })
    expect(dispatcher.endpoint.requests).toEqual([])
    await waitUntil(() => dispatcher.logLines.some(({ level }) => level === 'error'))
  })
})
