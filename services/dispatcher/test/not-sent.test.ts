import { randomBytes } from 'node:crypto'
import { afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { freePort } from '@workflow-service/testkit'
import type { OutboundResult } from '../src/outbound/outbound-result.ts'
import { parseSubnets } from '../src/outbound/parse-subnets.ts'
import { createSendRequest } from '../src/outbound/send-request.ts'
import type { RunningService } from '@workflow-service/service-kit'
import { type Answer, callDispatcher, sourceIn } from './support/test-dispatcher.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const dispatcher = useDispatcher()
let sourceId: string

beforeAll(async () => {
  sourceId = await dispatcher.saveSource({ signing_secret: 'the signing secret of this test' })
})

const send = (id: string, url?: string, change: Record<string, unknown> = {}): Promise<Answer> =>
  dispatcher.send(id, { source_id: sourceId, ...change }, url)

const unavailable = expect.objectContaining({
  status: 503,
  body: { error: expect.objectContaining({ code: 'service_unavailable' }) },
})

describe('a connection that the service cannot open', () => {
  const shortage: OutboundResult = { kind: 'unavailable', detail: 'the service has no files left', durationMs: 1 }
  const realRequest = createSendRequest({ allowedSubnets: parseSubnets('127.0.0.0/8') })
  const sendRequest = jest.fn(realRequest)
  let short: RunningService

  beforeAll(async () => {
    short = await dispatcher.startAnother({ sendRequest })
  })
  beforeEach(() => void sendRequest.mockClear())

  test('is 503 without a trace, and the same id is sent later, by any dispatcher', async () => {
    sendRequest.mockResolvedValueOnce(shortage)
    const id = newId()
    const answer = await send(id, short.url)
    expect(answer).toEqual(unavailable)
    expect(answer.body.error.message).toBe(
      'The service has no files left. Nothing was sent. Repeat the call with the same id.',
    )
    expect(await dispatcher.isRecorded(id)).toBe(false)
    expect((await send(id)).body.outcome).toBe('accepted')
    expect((await send(id, short.url)).body.outcome).toBe('accepted')
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })

  test('is 503 also while the egress proxy is down', async () => {
    const proxy = { host: '127.0.0.1', port: await freePort(), authorization: null }
    sendRequest.mockImplementationOnce(
      createSendRequest({ allowedSubnets: parseSubnets('127.0.0.0/8'), egressProxy: proxy }),
    )
    const id = newId()
    expect(await send(id, short.url)).toEqual(unavailable)
    expect(await dispatcher.isRecorded(id)).toBe(false)
    expect((await send(id, short.url)).body.outcome).toBe('accepted')
  })

  test('lets a call that waited for the outcome ask again, and not end as a conflict', async () => {
    const { promise, resolve } = Promise.withResolvers<OutboundResult>()
    sendRequest.mockReturnValueOnce(promise)
    const id = newId()
    const first = send(id, short.url)
    while (sendRequest.mock.calls.length === 0) await new Promise(setImmediate)
    const second = send(id)
    resolve(shortage)
    expect(await first).toEqual(unavailable)
    const { status, body } = await second
    // The second call may have arrived after the claim was removed.
    expect(status === 503 || body.outcome === 'accepted').toBe(true)
    expect((await send(id)).body.outcome).toBe('accepted')
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })

  test('that became unknown meanwhile is recorded as refused, because it was not sent', async () => {
    const { promise, resolve } = Promise.withResolvers<OutboundResult>()
    sendRequest.mockReturnValueOnce(promise)
    const id = newId()
    const call = send(id, short.url)
    while (!(await dispatcher.isRecorded(id))) await new Promise(setImmediate)
    const change = { outcome: 'unknown', finishedAt: new Date() }
    await dispatcher.db.prisma.delivery.update({ where: { id }, data: change })
    resolve(shortage)
    expect((await call).body).toMatchObject({ outcome: 'refused', reason: expect.stringMatching(/Nothing was sent/) })
    expect((await send(id)).body.outcome).toBe('refused')
  })

  test('is 503 for a save, and not a failed verification', async () => {
    sendRequest.mockResolvedValueOnce(shortage)
    const id = newId()
    const answer = await callDispatcher(short.url, 'PUT', dispatcher.sourcePath(id), sourceIn({}))
    expect(answer).toEqual(unavailable)
    expect((await dispatcher.call('GET', `${dispatcher.sourcePath(id)}/deliveries`)).status).toBe(404)
  })
})

describe('a rotation of SECRETS_KEY', () => {
  const [oldKey, newKey] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')]

  test('one dispatcher after another loses no payload: a key that is not known yet is 503', async () => {
    const behind = await dispatcher.startAnother({}, { secretsKeys: [oldKey] })
    const ahead = await dispatcher.startAnother({}, { secretsKeys: [newKey, oldKey] })
    const id = newId()
    const path = dispatcher.sourcePath(id)
    const body = sourceIn({ endpoint_url: dispatcher.endpoint.url, signing_secret: 'sealed with the new key' })
    expect((await callDispatcher(ahead.url, 'PUT', path, body)).status).toBe(201)
    dispatcher.endpoint.requests.length = 0

    const deliveryId = newId()
    expect(await send(deliveryId, behind.url, { source_id: id })).toEqual(unavailable)
    expect(await dispatcher.isRecorded(deliveryId)).toBe(false)
    const { signing_secret: _, ...withoutSecret } = body
    expect(await callDispatcher(behind.url, 'PUT', path, withoutSecret)).toEqual(unavailable)
    expect(await callDispatcher(behind.url, 'POST', `${path}/test`)).toEqual(unavailable)
    expect(dispatcher.endpoint.requests).toEqual([])

    const updated = await dispatcher.startAnother({}, { secretsKeys: [oldKey, newKey] })
    expect((await send(deliveryId, updated.url, { source_id: id })).body.outcome).toBe('accepted')
    expect((await send(deliveryId, behind.url, { source_id: id })).body.outcome).toBe('accepted')
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })
})

describe('a dispatcher that was delayed for longer than 8 s after its claim', () => {
  afterEach(() => void jest.restoreAllMocks())

  test('does not send, answers 503, and the id can be sent later', async () => {
    const delayed = await dispatcher.startAnother()
    const id = newId()
    let calls = 0
    const now = performance.now.bind(performance)
    // The claim is the first that reads the clock after the call for a slot.
    jest.spyOn(performance, 'now').mockImplementation(() => now() + calls++ * 10_000)
    const answer = await send(id, delayed.url)
    jest.restoreAllMocks()
    expect(answer).toEqual(unavailable)
    expect(dispatcher.endpoint.requests).toEqual([])
    expect((await send(id, delayed.url)).body.outcome).toBe('accepted')
  })
})
