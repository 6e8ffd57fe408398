import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { compile, DeliveriesLine, DeliveryOut, PAYLOAD_MAX_DEPTH } from '@workflow-service/contract'
import { newId, readSteps } from '@workflow-service/database'
import {
  beginTransaction,
  freePort,
  startCustomerEndpoint,
  startRawEndpoint,
  untilLocked,
  waitUntil,
} from '@workflow-service/testkit'
import { checkServiceSignature, checkServiceToken } from '@workflow-service/webhook-token'
import { SEND_AFTER_STOP_MS } from '../src/deliveries/deadlines.ts'
import {
  callDispatcher,
  type InternalResponse,
  invalidField,
  PAYLOAD,
  refusal,
  sendAll,
  sendTogether,
  sourceIn,
} from './support/test-dispatcher.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const SECRET = 'the signing secret of this test'

const isLine = compile(DeliveriesLine)

const dispatcher = useDispatcher()
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
const send = (id: string, change: Record<string, unknown> = {}, url = dispatcher.url): Promise<InternalResponse> =>
  dispatcher.send(id, { source_id: sourceId, ...change }, url)

/** What the log keeps for people. */
const rejectedAnswer = async (id: string): Promise<string | null> =>
  (await dispatcher.db.prisma.delivery.findUniqueOrThrow({ where: { id } })).rejectedAnswer

/** What the log keeps of the headers of an answer. */
const answerHeaders = async (headers: Record<string, string>, answer: { status: number; body?: string }) => {
  dispatcher.endpoint.answerWith({ ...answer, headers })
  const sent = await send(newId())
  expect(JSON.stringify(sent)).not.toContain('edge-7')
  const kept = await dispatcher.db.prisma.delivery.findUniqueOrThrow({ where: { id: sent.body.id } })
  return kept.answerHeaders as Record<string, string> | null
}

describe('200', () => {
  test('sends the payload unchanged with a new token, and answers what the endpoint answered', async () => {
    dispatcher.endpoint.answerWith({ status: 201, body: 'Order 17 booked.' })
    const id = newId()
    const [runId, sessionId] = [newId(), await dispatcher.createSession(4)]
    const lease = { session_id: sessionId, epoch: 4 }
    const path = `/internal/deliveries/${id.toUpperCase()}`
    const response = await dispatcher.call('PUT', path, deliveryBody({ run_id: runId, lease }), {
      'x-request-id': 'start-42',
    })
    const [request, ...others] = dispatcher.endpoint.requests
    expect(others).toEqual([])
    expect(request).toMatchObject({ method: 'POST', json: PAYLOAD })
    expect(request?.headers).toMatchObject({ 'content-type': 'application/json', 'x-request-id': 'start-42' })
    expect(await checkServiceToken(request?.headers['x-service-token'], SECRET)).toMatchObject({ ok: true })
    const signature = await checkServiceSignature(request!.headers, request!.body, SECRET)
    expect(signature).toMatchObject({ ok: true, deliveryId: request!.headers['x-delivery-id'] })
    expect(response).toMatchObject({
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
    expect(log.body.data).toEqual([response.body])
  })

  test('the body of a rejection is kept for people: the caller and the internal log do not get it', async () => {
    const body = `<b>no stock</b>\n${'x'.repeat(5_000)}`
    dispatcher.endpoint.answerWith({ status: 422, body })
    const id = newId()
    const responses = [await send(id), await send(id), await dispatcher.readLog(sourceId)]
    const rejected = { body: { outcome: 'rejected' } }
    expect(responses).toMatchObject([rejected, rejected, expect.anything()])
    expect(JSON.stringify([responses, dispatcher.logLines])).not.toContain('no stock')
    expect(await rejectedAnswer(id)).toBe(body.slice(0, 4_096))

    dispatcher.endpoint.answerWith({ status: 200, body: 'a line\nand another' })
    const accepted = newId()
    await send(accepted)
    expect(await rejectedAnswer(accepted)).toBeNull()
  })

  test('headers of an answer with a text are kept for people, bounded, without cookies and secrets', async () => {
    const long = {
      'x-long': 'y'.repeat(300),
      ...Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`x-${n}`, 'z'.repeat(190)])),
    }
    const given = {
      'retry-after': '7',
      'x-served-by': 'edge-7',
      'set-cookie': 'a=b',
      'x-auth': 'c',
      ...Object.fromEntries(['jwt-assertion', 'otp', 'csrf', 'sid', 'pass', 'pwd'].map((name) => [`x-${name}`, 'd'])),
      // Cut off first, its beginning would stay.
      'x-cut': `${'y'.repeat(190)}${SECRET}`,
      'x-echo': `for ${SECRET}`,
      'x-longest': SECRET.repeat(50),
    }
    const cut = `${'y'.repeat(190)}[hidden]`
    const kept = { 'retry-after': '7', 'x-served-by': 'edge-7', 'x-cut': cut, 'x-echo': 'for [hidden]' }
    expect(await answerHeaders(given, { status: 503 })).toEqual(kept)
    expect(await answerHeaders(given, { status: 200, body: 'Booked.' })).toMatchObject(kept)
    expect(await answerHeaders(given, { status: 204 })).toBeNull()
    expect(await answerHeaders({ 'x-ret-of-this-test': 'in a name' }, { status: 503 })).toBeNull()
    const bounded = await answerHeaders(long, { status: 500 })
    expect(bounded?.['x-long']).toHaveLength(200)
    expect(JSON.stringify(bounded).length).toBeLessThan(2_200)
  })

  test('secret and token that the endpoint repeats are replaced, in an answer and in the body of a rejection', async () => {
    dispatcher.endpoint.answerWith(({ headers }, index) => ({
      status: index === 0 ? 401 : 200,
      body: `${SECRET} ${String(headers['x-service-token'])} repeated`,
    }))
    const id = newId()
    await send(id)
    expect(await rejectedAnswer(id)).toBe('[hidden] [hidden] repeated')
    expect((await send(newId())).body.answer).toBe('[hidden] [hidden] repeated')
  })

  test('an unusual status is rejected and recorded', async () => {
    const odd = await startRawEndpoint((socket) => void socket.end('HTTP/1.1 000 Odd\r\ncontent-length: 0\r\n\r\n'))
    const source = await dispatcher.saveSource({ endpoint_url: odd.url }, 'never')
    const response = await send(newId(), { source_id: source })
    expect(response.body).toMatchObject({ outcome: 'rejected', status: 0 })
    expect((await dispatcher.readLog(source))[0]).toEqual(response.body)
    await odd.close()
  })

  test('an answer that redaction makes longer is truncated to 300 characters', async () => {
    const short = await dispatcher.saveSource({ signing_secret: 'abcdef' })
    dispatcher.endpoint.answerWith({ body: 'abcdef'.repeat(50) })
    const id = newId()
    const response = await send(id, { source_id: short })
    expect(response.body.answer).toHaveLength(300)
    expect((await dispatcher.readLog(short))[0]).toEqual(response.body)
  })
})

describe('payloads against the example', () => {
  test('a payload that does not follow the example is invalid with an error per field, and not sent', async () => {
    const id = newId()
    const response = await send(id, { payload: { order_id: 7, extra: true } })
    expect(response).toMatchObject({ status: 200, body: { outcome: 'invalid', status: null } })
    expect(response.body.mismatches?.map(({ field, code }) => [field, code])).toEqual([
      ['order_id', 'string_type'],
      ['total', 'missing'],
      ['extra', 'extra_forbidden'],
    ])
    expect(response.body.reason).toMatch(/order_id: must be a string.*total: is required/)
    expect(dispatcher.endpoint.requests).toEqual([])
    expect((await send(id, { payload: { order_id: 7, extra: true } })).body).toEqual(response.body)
  })

  test.each([
    ['NUL', 'a\u0000b'],
    ['a lone surrogate', 'a\ud800b'],
    ['a line break', 'a\nb'],
    ['200,000 characters', 'x'.repeat(200_000)],
  ])('an unknown field whose name has %s is invalid and recorded', async (_what, name) => {
    const id = newId()
    const response = await send(id, { payload: { ...PAYLOAD, [name]: 1 } })
    expect(response.body).toMatchObject({ outcome: 'invalid', mismatches: [{ code: expect.any(String) }] })
    expect(response.body.reason?.length).toBeLessThanOrEqual(2_000)
    expect((await dispatcher.readLog(sourceId))[0]).toEqual(response.body)
    expect(dispatcher.endpoint.requests).toEqual([])
  })

  test('a payload of more than 256 KiB is invalid, and one of nearly as much arrives completely', async () => {
    const mismatches = [{ field: 'body', code: 'too_large' }]
    const larger = { order_id: 'x'.repeat(256 * 1024), total: 1 }
    expect((await send(newId(), { payload: larger })).body).toMatchObject({ outcome: 'invalid', mismatches })
    const large = { order_id: 'é'.repeat(131_000), total: 1 }
    expect((await send(newId(), { payload: large })).body.outcome).toBe('accepted')
    expect(dispatcher.endpoint.requests[0]?.json).toEqual(large)
  })
})

/** Sends a payload with lists in lists, in as many levels as are given. */
const sendNested = (levels: number): Promise<InternalResponse> => {
  const nested = `"total":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}`
  const body = JSON.stringify(deliveryBody()).replace('"total":12', nested)
  return dispatcher.call('PUT', `/internal/deliveries/${newId()}`, body)
}

describe('404', () => {
  test('for an unknown or deleted source and one of another organization, nothing is recorded', async () => {
    const deleted = await dispatcher.saveSource()
    await dispatcher.call('DELETE', dispatcher.sourcePath(deleted))
    dispatcher.endpoint.requests.length = 0
    for (const change of [{ source_id: newId() }, { source_id: deleted }, { organization_id: newId() }]) {
      const id = newId()
      expect(await send(id, change)).toMatchObject(refusal(404, 'not_found'))
      expect(await dispatcher.isRecorded(id)).toBe(false)
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
    ['a lease without epoch', { lease: { session_id: newId() } }, 'lease.epoch', 'missing'],
    ['an epoch that is too large', { lease: { session_id: newId(), epoch: 1e20 } }, 'lease.epoch', 'less_than_equal'],
  ])('refuses %s', async (_what, change, field, code) => {
    expect(await send(newId(), change)).toMatchObject(invalidField(field, code))
  })

  test('refuses a payload that nests too deep, even 100,000 levels', async () => {
    expect((await sendNested(PAYLOAD_MAX_DEPTH)).body.outcome).toBe('invalid')
    for (const levels of [PAYLOAD_MAX_DEPTH + 1, 100_000])
      expect(await sendNested(levels)).toMatchObject(invalidField('payload', 'too_deep'))
  })
})

describe('the signing secret', () => {
  test('that is damaged: the payload is refused, because waiting repairs nothing, and an error is logged', async () => {
    const damaged = await dispatcher.saveSource({ signing_secret: 'will be damaged' })
    dispatcher.endpoint.requests.length = 0
    await dispatcher.db.pool.query(
      'UPDATE webhook_sources SET signing_secret = set_byte(signing_secret, 30, get_byte(signing_secret, 30) # 1) WHERE id = $1',
      [damaged],
    )
    const response = await send(newId(), { source_id: damaged })
    expect(response.body).toMatchObject({ outcome: 'refused', reason: expect.stringContaining('signing secret') })
    expect(dispatcher.endpoint.requests).toEqual([])
    await waitUntil(() => dispatcher.logLines.some(({ level }) => level === 'error'))
  })
})

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
    dispatcher.endpoint.answerWith(() => ({ status: 499 + dispatcher.endpoint.requests.length }))
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

  test('of many concurrent calls at two dispatchers one sends, and all get the same response', async () => {
    const other = await dispatcher.startAnother()
    const id = newId()
    dispatcher.endpoint.answerWith({ body: 'once', delayMs: 200 })
    const calls = Array.from({ length: 10 }, (_, index) => send(id, {}, index % 2 === 0 ? dispatcher.url : other.url))
    const responses = await Promise.all(calls)
    expect(dispatcher.endpoint.requests).toHaveLength(1)
    for (const response of responses)
      expect(response).toMatchObject({ status: 200, body: { outcome: 'accepted', answer: 'once' } })
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
      const response = await send(id)
      expect(response.body).toMatchObject({
        outcome: 'unknown',
        status: null,
        reason: expect.stringContaining('interrupted'),
      })
      expect((await send(id)).body).toEqual(response.body)
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
    expect(await send(id, different)).toMatchObject(refusal(409, 'idempotency_conflict'))
    expect(dispatcher.endpoint.requests).toEqual([])
  })

  test('the id was used by another organization, about which nothing is revealed', async () => {
    const id = newId()
    await send(id)
    const other = await dispatcher.createOrganization()
    const otherSource = newId()
    await dispatcher.saveIn(other, {}, otherSource, '?verify=never')
    dispatcher.endpoint.requests.length = 0
    const response = await send(id, { organization_id: other, source_id: otherSource })
    expect(response).toMatchObject(refusal(409, 'idempotency_conflict'))
    expect(JSON.stringify(response.body)).not.toContain(sourceId)
    expect(dispatcher.endpoint.requests).toEqual([])
  })

  test('the id belongs to a verification request', async () => {
    const log = await dispatcher.call('GET', `${dispatcher.sourcePath(sourceId)}/deliveries?kind=verification`)
    expect((await send(log.body.data[0]?.id ?? '')).body.error.code).toBe('idempotency_conflict')
  })
})

describe('with the journal of a run', () => {
  const journal = {
    position: 0,
    steps: [{ kind: 'message', data: '{"agent":"builtin","text":"hello"}' }],
    call_id: 'one',
    tool: 'builtin',
    source_name: 'Order intake',
    last_of_run: 1,
  }

  test('the steps and the result are written, and the run of which it was the last payload ends', async () => {
    const { db } = dispatcher
    const { sessionId, runIds } = await dispatcher.createRuns(1)
    const [runId, id] = [runIds[0]!, newId()]
    const lease = {
      leaseEpoch: 1,
      leaseOwner: 'a',
      leaseUntil: new Date(Date.now() + 60_000),
      waitingSince: new Date(),
    }
    await db.prisma.session.update({ where: { id: sessionId }, data: lease })
    const running = { status: 'running', startedAt: new Date(), attempts: 1 }
    await db.prisma.start.update({ where: { id: runId }, data: running })
    dispatcher.endpoint.answerWith({ status: 200, body: 'thanks' })
    const response = await send(id, { run_id: runId, lease: { session_id: sessionId, epoch: 1 }, journal })
    expect(response.body.outcome).toBe('accepted')
    expect(response.headers.get('x-run-journal')).toBe('succeeded')
    expect(Object.keys(response.body)).toEqual(Object.keys(DeliveryOut.properties))
    const [message, result] = await readSteps(db, runId)
    expect(message?.data).toEqual({ agent: 'builtin', text: 'hello' })
    expect(result).toMatchObject({
      kind: 'tool_result',
      data: { call_id: 'one', ok: true, delivery: { id, source_id: sourceId, outcome: 'accepted', answer: 'thanks' } },
    })
    expect(await db.prisma.start.findUnique({ where: { id: runId } })).toMatchObject({ status: 'succeeded' })
    const again = await send(id, { run_id: runId, lease: { session_id: sessionId, epoch: 1 }, journal })
    expect([again.body.outcome, again.headers.get('x-run-journal')]).toEqual(['accepted', null])
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })

  test('is refused without the run or its lease', async () => {
    expect(await send(newId(), { journal })).toMatchObject({
      status: 422,
      body: { error: { details: [{ field: 'run_id' }, { field: 'lease' }] } },
    })
  })
})

describe('409 lease_lost', () => {
  test.each([2, 4])("epoch %i is not the session's 3: nothing is sent and nothing recorded", async (epoch) => {
    const id = newId()
    const lease = { session_id: await dispatcher.createSession(3), epoch }
    expect(await send(id, { lease })).toMatchObject(refusal(409, 'lease_lost'))
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

const entry = (change: Record<string, unknown> = {}) => ({ delivery_id: newId(), body: deliveryBody(change) })
const errorOf = (code: string) => ({ error: expect.objectContaining({ code, request_id: 'together' }) })

describe('several payloads in one request', () => {
  test('are each checked and answered by themselves, without what was sent', async () => {
    const [runId, sessionId] = [newId(), await dispatcher.createSession(4)]
    const lease = { session_id: sessionId, epoch: 3 }
    const same = entry()
    dispatcher.endpoint.answerWith({ status: 201, body: 'Order 17 booked.' })
    const deliveries = [
      same,
      entry({ payload: { order_id: 7 } }),
      entry({ source_id: newId() }),
      entry({ run_id: runId, lease }),
      entry({ payload: undefined }),
      { ...same, body: deliveryBody({ payload: { ...PAYLOAD, total: 1 } }) },
    ]
    const lines = await sendAll(dispatcher.url, deliveries)
    const delivered = { reason: null, answer: 'Order 17 booked.', duration_ms: expect.any(Number) }
    expect(lines).toEqual([
      { index: 0, status: 200, journal: null, body: { outcome: 'accepted', status: 201, ...delivered } },
      { index: 1, status: 200, journal: null, body: expect.objectContaining({ outcome: 'invalid', status: null }) },
      { index: 2, status: 404, journal: null, body: errorOf('not_found') },
      { index: 3, status: 409, journal: null, body: errorOf('lease_lost') },
      { index: 4, status: 422, journal: null, body: errorOf('validation_error') },
      { index: 5, status: 409, journal: null, body: errorOf('idempotency_conflict') },
    ])
    expect(lines.every((line) => isLine(line))).toBe(true)
    const refusals = dispatcher.logLines.filter(({ msg }) => msg === 'delivery.refused')
    expect(refusals.map(({ delivery_id, status }) => [delivery_id, status])).toEqual(
      expect.arrayContaining(lines.slice(2).map(({ index, status }) => [deliveries[index]!.delivery_id, status])),
    )
    expect(dispatcher.endpoint.requests.map(({ headers }) => headers['x-request-id'])).toEqual(['together'])
  })

  test('are answered while another one is still being sent', async () => {
    const slow = await dispatcher.saveSource({ signing_secret: null })
    const answered = Promise.withResolvers<void>()
    dispatcher.endpoint.answerWith(async (request) => {
      if ((request.json as typeof PAYLOAD).order_id === 'slow') await answered.promise
      return { status: 204 }
    })
    const payload = { ...PAYLOAD, order_id: 'slow' }
    const lines = sendTogether(dispatcher.url, [entry({ source_id: slow, payload }), entry()])
    expect((await lines.next()).value).toMatchObject({ index: 1, body: { outcome: 'accepted' } })
    answered.resolve()
    expect((await lines.next()).value).toMatchObject({ index: 0, body: { outcome: 'accepted' } })
    expect((await lines.next()).done).toBe(true)
  })

  test.each([
    ['none', 0],
    ['more than 64', 65],
  ])('are refused as a whole if they are %s', async (_many, count) => {
    const deliveries = Array.from({ length: count }, () => ({ request_id: 'r', trace: {}, ...entry() }))
    const refused = await dispatcher.call('POST', '/internal/deliveries', { deliveries })
    expect(refused).toMatchObject(invalidField('deliveries', count === 0 ? 'too_short' : 'too_long'))
    expect(dispatcher.endpoint.requests).toEqual([])
  })
})

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
  test('at the limit of a source the response is 503, nothing is recorded, and other sources are not affected', async () => {
    const narrow = await dispatcher.startAnother({ slotWaitMs: 100 }, { maxInFlightPerSource: 2 })
    const { open, answer } = createGate()
    dispatcher.endpoint.answerWith(answer)
    const slow = [send(newId(), {}, narrow.url), send(newId(), {}, narrow.url)]
    await dispatcher.endpoint.waitForRequests(2)
    const id = newId()
    const beyond = await send(id, {}, narrow.url)
    expect(beyond).toMatchObject(refusal(503, 'service_unavailable'))
    expect(beyond.body.error.message).toMatch(/^2 requests to this .* Repeat the call with the same id\.$/)
    expect(await dispatcher.isRecorded(id)).toBe(false)
    await using others = await startCustomerEndpoint()
    const otherSource = await dispatcher.saveSource({ endpoint_url: others.url })
    expect((await send(newId(), { source_id: otherSource }, narrow.url)).body.outcome).toBe('accepted')
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
    const headers = await dispatcher.createActor()
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

  test('at the limit of the process the response is 503, nothing is recorded, and the call may be repeated', async () => {
    const { narrow, open, slow } = await startFull({ slotWaitMs: 100 }, { maxInFlight: 1 })
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

  test('a stopping dispatcher sends no payload whose response would come after its end: a repeated call sends it', async () => {
    const stopping = await dispatcher.startAnother()
    using client = await beginTransaction(dispatcher.db.pool)
    await client.query('LOCK TABLE deliveries IN EXCLUSIVE MODE')
    const late = newId()
    const sending = send(late, {}, stopping.url)
    await untilLocked(dispatcher.db.pool, 'AS request (id, organization_id, source_id')
    const stopped = stopping.stop()
    // Its port is closed when the time begins.
    await waitUntil(async () => !(await fetch(`${stopping.url}/healthz`).catch(() => undefined)))
    await sleep(SEND_AFTER_STOP_MS + 100)
    await client.query('ROLLBACK')
    await stopped
    expect(await sending).toMatchObject(refusal(503, 'service_unavailable'))
    expect(await dispatcher.isRecorded(late)).toBe(false)
    expect(dispatcher.endpoint.requests).toHaveLength(0)
    expect((await send(late)).body.outcome).toBe('accepted')
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
    for (const response of [await send(id), resent]) {
      expect(response).toMatchObject(refusal(403, 'organization_suspended'))
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
