import { beforeAll, describe, expect, test } from '@jest/globals'
import { newId, readRejectedAnswers } from '@workflow-service/database'
import { freePort, startRawEndpoint, waitUntil } from '@workflow-service/testkit'
import { checkServiceToken } from '@workflow-service/webhook-token'
import { type Answer, callDispatcher, PAYLOAD } from './support/test-dispatcher.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const SECRET = 'the signing secret of this test'

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
const send = (id: string, change: Record<string, unknown> = {}, url = dispatcher.url): Promise<Answer> =>
  dispatcher.send(id, { source_id: sourceId, ...change }, url)

/** What the log keeps for people. */
const rejectedAnswers = async (id: string): Promise<string[]> => [
  ...(await readRejectedAnswers(dispatcher.db, dispatcher.organizationId, [id])).values(),
]

describe('200', () => {
  test('sends the payload unchanged with a new token, and answers what the endpoint answered', async () => {
    dispatcher.endpoint.answerWith({ status: 201, body: 'Order 17 booked.' })
    const id = newId()
    const [runId, sessionId] = [newId(), await dispatcher.createSession(4)]
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

  test('the body of a rejection is kept for people: the caller and the internal log do not get it', async () => {
    const body = `<b>no stock</b>\n${'x'.repeat(5_000)}`
    dispatcher.endpoint.answerWith({ status: 422, body })
    const id = newId()
    const answers = [await send(id), await send(id), await dispatcher.readLog(sourceId)]
    expect(answers).toMatchObject([
      { body: { outcome: 'rejected' } },
      { body: { outcome: 'rejected' } },
      expect.anything(),
    ])
    expect(JSON.stringify([answers, dispatcher.logLines])).not.toContain('no stock')
    expect(await rejectedAnswers(id)).toEqual([body.slice(0, 4_096)])

    dispatcher.endpoint.answerWith({ status: 200, body: 'a line\nand another' })
    const accepted = newId()
    await send(accepted)
    expect(await rejectedAnswers(accepted)).toEqual([])
  })

  test('secret and token in the body of a rejection are replaced', async () => {
    dispatcher.endpoint.answerWith(({ headers }) => ({
      status: 401,
      body: `bad token\n${String(headers['x-service-token'])}\nfor ${SECRET}`,
    }))
    const id = newId()
    await send(id)
    expect(await rejectedAnswers(id)).toEqual(['bad token\n[hidden]\nfor [hidden]'])
  })

  test.each(['000', '099', '600', '999'])('the unusual status %s is rejected and recorded', async (status) => {
    const odd = await startRawEndpoint(
      (socket) => void socket.end(`HTTP/1.1 ${status} Odd\r\ncontent-length: 0\r\n\r\n`),
    )
    const source = await dispatcher.saveSource({ endpoint_url: odd.url }, 'never')
    const id = newId()
    const answer = await send(id, { source_id: source })
    expect(answer.body).toMatchObject({ outcome: 'rejected', status: Number(status) })
    expect((await dispatcher.readLog(source))[0]).toEqual(answer.body)
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
    expect((await dispatcher.readLog(short))[0]).toEqual(answer.body)
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
    expect((await dispatcher.readLog(sourceId))[0]).toEqual(answer.body)
    expect(dispatcher.endpoint.requests).toEqual([])
  })

  test.each([
    ['is larger than 64 KiB', { order_id: 'x'.repeat(65_536), total: 1 }, /at most 65,536 bytes of JSON; it has more/],
    [
      'has a list of 101 items',
      { ...PAYLOAD, items: Array(101).fill(1) },
      /lists of more than 100 items; items has 101/,
    ],
  ])(
    'a payload for an example that was stored before there were limits and %s is refused',
    async (_what, example, reason) => {
      const stored = await dispatcher.saveSource()
      dispatcher.endpoint.requests.length = 0
      const query = 'UPDATE webhook_sources SET example_request_body = $2 WHERE id = $1'
      await dispatcher.db.pool.query(query, [stored, JSON.stringify(example)])
      const answer = await send(newId(), { source_id: stored, payload: example })
      expect(answer.body).toMatchObject({ outcome: 'refused', reason: expect.stringMatching(reason) })
      expect(dispatcher.endpoint.requests).toEqual([])
    },
  )

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

describe('404', () => {
  test('for an unknown or deleted source and one of another organization, nothing is recorded', async () => {
    const deleted = await dispatcher.saveSource()
    await dispatcher.call('DELETE', dispatcher.sourcePath(deleted))
    dispatcher.endpoint.requests.length = 0
    for (const change of [{ source_id: newId() }, { source_id: deleted }, { organization_id: newId() }]) {
      const id = newId()
      expect(await send(id, change)).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
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

describe('the signing secret', () => {
  test('that is damaged: the payload is refused, because waiting repairs nothing, and an error is logged', async () => {
    const damaged = await dispatcher.saveSource({ signing_secret: 'will be damaged' })
    dispatcher.endpoint.requests.length = 0
    await dispatcher.db.pool.query(
      'UPDATE webhook_sources SET signing_secret = set_byte(signing_secret, 30, get_byte(signing_secret, 30) # 1) WHERE id = $1',
      [damaged],
    )
    const answer = await send(newId(), { source_id: damaged })
    expect(answer.body).toMatchObject({ outcome: 'refused', reason: expect.stringContaining('signing secret') })
    expect(dispatcher.endpoint.requests).toEqual([])
    await waitUntil(() => dispatcher.logLines.some(({ level }) => level === 'error'))
  })
})
