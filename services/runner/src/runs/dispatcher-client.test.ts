import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import type { DeliveriesIn } from '@workflow-service/contract'
import {
  type Answer,
  type AnswerSource,
  type CapturedLogger,
  createCapturedLogger,
  type CustomerEndpoint,
  freePort,
  startCustomerEndpoint,
  waitUntil,
} from '@workflow-service/testkit'
import { createLeasedSession } from '../../test/support/leased-session.ts'
import { LeaseLostError, RunError, RunInterruptedError } from '../run-errors.ts'
import {
  createDispatcherClient,
  type DispatcherClient,
  type OutgoingDelivery,
  readResponse,
} from './dispatcher-client.ts'
import { createDispatcherHttp } from './dispatcher-http.ts'

const TOKEN = 'a-token-that-no-log-line-may-ever-carry'
const accepted = { outcome: 'accepted', status: 204, answer: null, reason: null, id: 'any' }

/** A dispatcher that answers with a script: one response for each request, the last one for all that follow. */
async function scriptedDispatcher(...responses: AnswerSource[]): Promise<CustomerEndpoint> {
  const dispatcher = await startCustomerEndpoint({
    async answer(request, index) {
      const next = responses[Math.min(index, responses.length - 1)]!
      return typeof next === 'function' ? await next(request, index) : next
    },
  })
  dispatchers.push(dispatcher)
  return dispatcher
}

const lineOf = (index: number, status: number, body: unknown): string =>
  `${JSON.stringify({ index, status, journal: null, body })}\n`
/** The response to the first delivery of a request. */
const respond = (status: number, body: unknown): Answer => ({ body: lineOf(0, status, body) })
const errorBody = (code: string): object => ({ error: { code, message: 'No.', request_id: 'r' } })
const refuse = (status: number, code: string) => respond(status, errorBody(code))
/** The response to a request as a whole. */
const respondWhole = (status: number, body: object): Answer => ({ status, body })
const refuseAll = (status: number, code: string) => respondWhole(status, errorBody(code))
/** Sets the clock before it answers. */
const later = (ms: number, next: Answer) => (): Answer => {
  nowMs = ms
  return next
}

let leased: ReturnType<typeof createLeasedSession>
let delivery: OutgoingDelivery
let log: CapturedLogger
let client: DispatcherClient | undefined
let nowMs: number
let waiting: number[]
const dispatchers: CustomerEndpoint[] = []

beforeEach(() => {
  leased = createLeasedSession()
  const { sessionId, epoch, organizationId } = leased.session
  delivery = {
    params: { delivery_id: newId() },
    requestId: 'request-17',
    trace: null,
    body: {
      organization_id: organizationId,
      source_id: newId(),
      payload: { message: 'hello' },
      run_id: newId(),
      lease: { session_id: sessionId, epoch },
    },
  }
  log = createCapturedLogger()
  nowMs = 0
  waiting = []
})
afterEach(async () => {
  await client?.close()
  await Promise.all(dispatchers.splice(0).map((dispatcher) => dispatcher.close()))
})

function useClient(url: string): DispatcherClient {
  const { logger } = log
  const waitingDeliveries = { inc: () => void waiting.push(1), dec: () => void waiting.push(-1) }
  client = createDispatcherClient({
    transport: createDispatcherHttp({ dispatcherUrl: url, internalApiToken: TOKEN, concurrency: 4 }),
    logger,
    waitingDeliveries,
    now: () => nowMs,
  })
  return client
}

const deliverTo = (url: string) => useClient(url).deliver(leased.session, delivery)

async function deliver(...responses: AnswerSource[]) {
  const { requests, url } = await scriptedDispatcher(...responses)
  return { requests, result: deliverTo(url) }
}

describe('the dispatcher client', () => {
  test('sends the delivery under its id below the path of DISPATCHER_URL, with the token, the request id and the lease', async () => {
    const { requests, url } = await scriptedDispatcher(respond(200, { ...accepted, answer: 'thanks' }))
    const result = await deliverTo(`${url}/behind/a/proxy/`)
    expect(result).toMatchObject({ outcome: 'accepted', status: 204, answer: 'thanks', reason: null })
    expect(requests).toMatchObject([
      {
        method: 'POST',
        path: '/behind/a/proxy/internal/deliveries',
        headers: { authorization: `Bearer ${TOKEN}` },
        json: {
          deliveries: [{ ...delivery.params, request_id: 'request-17', trace: {}, body: delivery.body }],
        },
      },
    ])
  })

  test.each<[string, Answer]>([
    ['breaks the connection off', 'reset'],
    ['is at the limit of the webhook source', refuse(503, 'service_unavailable')],
    ['is overloaded', refuseAll(503, 'service_unavailable')],
    ['does not know the token yet', refuseAll(401, 'unauthorized')],
    ['fails', refuse(500, 'internal_error')],
    ['answers without JSON', { body: '<html>' }],
    ['breaks off within its response', { respond: (response) => void response.write('{', () => response.destroy()) }],
    ['ends its response too early', { body: '{' }],
    ['says that the delivery is still in flight', respond(200, { ...accepted, outcome: 'in_flight' })],
  ])('repeats the same delivery when the dispatcher %s', async (_what, failed) => {
    const { requests, result } = await deliver(failed, failed, respond(200, accepted))
    expect(await result).toMatchObject({ outcome: 'accepted' })
    expect(requests).toHaveLength(3)
    expect(new Set(requests.map(({ path, text }) => JSON.stringify([path, text]))).size).toBe(1)
  })

  test.each([400, 404, 409, 422])(
    'repeats the delivery after the %i of a proxy before the dispatcher',
    async (status) => {
      const page = { status, body: '<html>' }
      const { result } = await deliver(page, page, respond(200, accepted))
      expect(await result).toMatchObject({ outcome: 'accepted' })
      expect(readResponse({ status, body: undefined })).toMatchObject({ repeat: 'invalid' })
    },
  )

  test('does not take a service without this path, such as at a wrong DISPATCHER_URL, for a source that is gone', async () => {
    const error = { code: 'not_found', message: 'POST /base/internal/deliveries not found.', request_id: 'r' }
    const wrong = respondWhole(404, { error })
    const { result } = await deliver(wrong, wrong, respond(200, accepted))
    expect(await result).toMatchObject({ outcome: 'accepted' })
  })

  test('repeats a delivery that the dispatcher could not read: an earlier call may have sent it', async () => {
    const tooSlow = refuseAll(400, 'invalid_request')
    const { requests, result } = await deliver('reset', tooSlow, tooSlow, respond(200, accepted))
    expect(await result).toMatchObject({ outcome: 'accepted' })
    expect(requests).toHaveLength(4)
  })

  test('waits for a dispatcher that is unavailable', async () => {
    const port = await freePort()
    const result = deliverTo(`http://127.0.0.1:${port}`)
    await waitUntil(() => log.text.includes('dispatcher.unavailable'))
    dispatchers.push(await startCustomerEndpoint({ port, answer: respond(200, accepted) }))
    expect(await result).toMatchObject({ outcome: 'accepted' })
    expect(log.text).toContain('dispatcher.available')
    expect(log.text).not.toContain(TOKEN)
  })

  test('counts a delivery that waits, and logs it once after 10 seconds', async () => {
    const busy = refuse(503, 'service_unavailable')
    const refusals = [10_000, 20_000, 40_000].map((ms) => later(ms, busy))
    const { result } = await deliver(...refusals, later(60_000, respond(200, accepted)))
    await result
    const lines = log.lines.filter(({ msg }) => msg === 'delivery.waiting')
    expect(lines).toMatchObject([
      { ...delivery.params, source_id: delivery.body.source_id, waited_ms: 20_000, request_id: 'request-17' },
    ])
    expect(waiting).toEqual([1, -1])
    // The dispatcher itself answers, so it is not reported as unavailable.
    expect(log.text).not.toContain('dispatcher.unavailable')
  })

  test('is not counted as waiting any more when the runner stops', async () => {
    const { result } = await deliver(refuse(503, 'service_unavailable'))
    await waitUntil(() => waiting.length === 1)
    leased.activeSessions.interruptAll()
    await expect(result).rejects.toThrow(RunInterruptedError)
    expect(waiting).toEqual([1, -1])
  })

  test.each([
    [403, 'organization_suspended', RunInterruptedError],
    [409, 'lease_lost', LeaseLostError],
    [409, 'idempotency_conflict', RunError],
  ])('ends the run after %i %s', (status, code, errorClass) => {
    expect(() => readResponse({ status, body: errorBody(code) })).toThrow(errorClass)
  })

  test.each<[number, string, string]>([
    [404, 'not_found', 'refused'],
    [422, 'validation_error', 'invalid'],
    [400, 'body_too_large', 'invalid'],
  ])('%i %s is an outcome: %s, and nothing was sent', (status, code, outcome) => {
    const sent = { status: null, answer: null, reason: expect.any(String) }
    expect(readResponse({ status, body: errorBody(code) })).toEqual({ outcome, ...sent })
  })

  test('lets a request under way end when the runner stops', async () => {
    const held = Promise.withResolvers<Answer>()
    const { requests, result } = await deliver(() => held.promise)
    await waitUntil(() => requests.length === 1)
    leased.activeSessions.interruptAll()
    held.resolve(respond(200, accepted))
    expect(await result).toMatchObject({ outcome: 'accepted' })
  })

  test('abandons a request under way when the lease is lost', async () => {
    const { requests, result } = await deliver('hang')
    await waitUntil(() => requests.length === 1)
    leased.activeSessions.markLost(leased.session)
    await expect(result).rejects.toThrow(LeaseLostError)
  })
})

const many = (count: number, payload: Record<string, unknown> = { message: 'hello' }): OutgoingDelivery[] =>
  Array.from({ length: count }, () => ({
    ...delivery,
    params: { delivery_id: newId() },
    body: { ...delivery.body, payload },
  }))
const idOf = ({ params }: OutgoingDelivery): string => params.delivery_id
const idsOf = ({ json }: { readonly json: unknown }): string[] =>
  (json as DeliveriesIn).deliveries.map(({ delivery_id }) => delivery_id)
const acceptAll: AnswerSource = (request) => ({
  body: idsOf(request)
    .map((_, index) => lineOf(index, 200, accepted))
    .join(''),
})

async function deliverAll(deliveries: readonly OutgoingDelivery[], ...responses: AnswerSource[]) {
  const dispatcher = await scriptedDispatcher(...responses)
  const { deliver: deliverOne } = useClient(dispatcher.url)
  return { ...dispatcher, results: deliveries.map((each) => deliverOne(leased.session, each)) }
}

describe('deliveries at the same time', () => {
  test('share a request, and each gets its own response as soon as it comes, in pieces too', async () => {
    const both = many(2)
    const [text, more] = [lineOf(1, 200, { ...accepted, answer: 'señal' }), Promise.withResolvers<void>()]
    const half = Buffer.from(text).indexOf('ñ') + 1
    const { requests, results } = await deliverAll(both, {
      async respond(response) {
        response.write(Buffer.from(text).subarray(0, half), () => response.write(Buffer.from(text).subarray(half)))
        await more.promise
        response.end(lineOf(0, 422, errorBody('validation_error')))
      },
    })
    expect(await results[1]).toMatchObject({ outcome: 'accepted', answer: 'señal' })
    more.resolve()
    expect(await results[0]).toMatchObject({ outcome: 'invalid' })
    expect(requests.map(idsOf)).toEqual([both.map(idOf)])
  })

  test('are repeated without those that were answered when the connection breaks off', async () => {
    const both = many(2)
    const { requests, results } = await deliverAll(
      both,
      { respond: (response) => void response.write(lineOf(0, 200, accepted), () => response.destroy()) },
      acceptAll,
    )
    expect(await Promise.all(results)).toMatchObject([{ outcome: 'accepted' }, { outcome: 'accepted' }])
    expect(requests.map(idsOf)).toEqual([both.map(idOf), [idOf(both[1]!)]])
  })

  test.each([
    ['64 deliveries', () => many(65), [64, 1]],
    ['256 KiB', () => many(3, { message: 'é'.repeat(60_000) }), [2, 1]],
    ['256 KiB, but for one that is larger', () => many(2, { message: 'x'.repeat(300_000) }), [1, 1]],
  ])('share requests of at most %s', async (_limit, make, sizes) => {
    const { requests, results } = await deliverAll(make(), acceptAll)
    await Promise.all(results)
    expect(requests.map((request) => idsOf(request).length).toSorted((a, b) => b - a)).toEqual(sizes)
  })

  test.each([
    ['of 1.0.0', 404, 'not_found'],
    ['that does not know a field of the request', 422, 'validation_error'],
  ])('are sent one by one to a dispatcher %s', async (_which, status, code) => {
    const trace = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: null }
    const both = many(2).map((each) => ({ ...each, trace }))
    const { requests, results } = await deliverAll(both, refuseAll(status, code), respondWhole(200, accepted))
    expect(await Promise.all(results)).toMatchObject([{ outcome: 'accepted' }, { outcome: 'accepted' }])
    const headers = { 'x-request-id': 'request-17', traceparent: trace.traceparent }
    const [, ...alone] = requests
    expect(alone).toHaveLength(2)
    // On connections of their own, they arrive in any order.
    expect(alone).toEqual(
      expect.arrayContaining(
        both.map(({ params: { delivery_id: id }, body: json }): unknown =>
          expect.objectContaining({
            method: 'PUT',
            path: `/internal/deliveries/${id}`,
            headers: expect.objectContaining(headers),
            json,
          }),
        ),
      ),
    )
  })

  test('get their responses when one of them is no longer waited for', async () => {
    const both = many(2)
    const other = createLeasedSession()
    const dispatcher = await scriptedDispatcher(() => {
      other.activeSessions.markLost(other.session)
      return { body: lineOf(1, 200, accepted) }
    })
    const { deliver: deliverOne } = useClient(dispatcher.url)
    const abandoned = deliverOne(other.session, both[0]!)
    const result = deliverOne(leased.session, both[1]!)
    await expect(abandoned).rejects.toThrow(LeaseLostError)
    expect(await result).toMatchObject({ outcome: 'accepted' })
    expect(dispatcher.requests).toHaveLength(1)
  })
})
