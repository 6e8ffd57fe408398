import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { DELIVERY_OUTCOMES } from '@workflow-service/contract'
import { type CapturedLogger, createCapturedLogger, freePort, waitUntil } from '@workflow-service/testkit'
import * as fc from 'fast-check'
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

type Answer = (response: ServerResponse, request: IncomingMessage) => void

/** A dispatcher that answers with a script: one answer for each request, the last one for all that follow. */
async function scriptedDispatcher(...answers: Answer[]) {
  const requests: { method?: string; url?: string; headers: IncomingMessage['headers']; body: unknown }[] = []
  const server = createServer((request, response) => {
    void (async () => {
      let text = ''
      for await (const chunk of request.setEncoding('utf8')) text += String(chunk)
      const { method, url, headers } = request
      requests.push({ method, url, headers, body: JSON.parse(text) })
      const respond = answers[Math.min(requests.length, answers.length) - 1]!
      respond(response, request)
    })()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { requests, url: `http://127.0.0.1:${port}`, server }
}

const answer =
  (status: number, body: unknown): Answer =>
  (response) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
const refuse = (status: number, code: string) => answer(status, { error: { code, message: 'No.', request_id: 'r' } })
/** Sets the clock before it answers. */
const later =
  (ms: number, next: Answer): Answer =>
  (response, request) => {
    nowMs = ms
    next(response, request)
  }
const breakOff: Answer = (_response, request) => void request.socket.resetAndDestroy()

let leased: ReturnType<typeof createLeasedSession>
let delivery: OutgoingDelivery
let log: CapturedLogger
let client: DispatcherClient | undefined
let nowMs: number
let waiting: number[]
const servers: { closeAllConnections(): void; close(): void }[] = []

beforeEach(() => {
  leased = createLeasedSession()
  const { sessionId, epoch, organizationId } = leased.session
  delivery = {
    id: newId(),
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
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

async function deliverTo(url: string) {
  const { logger } = log
  const waitingDeliveries = { inc: () => void waiting.push(1), dec: () => void waiting.push(-1) }
  client = createDispatcherClient({
    transport: createDispatcherHttp({ url, token: TOKEN, connections: 4 }),
    logger,
    waitingDeliveries,
    now: () => nowMs,
  })
  return await client.deliver(leased.session, delivery)
}

async function deliver(...answers: Answer[]) {
  const dispatcher = await scriptedDispatcher(...answers)
  servers.push(dispatcher.server)
  return { requests: dispatcher.requests, result: deliverTo(dispatcher.url) }
}

describe('the dispatcher client', () => {
  test('sends the delivery under its id, with the token, the request id and the lease', async () => {
    const { requests, result } = await deliver(answer(200, { ...accepted, answer: 'thanks' }))
    expect(await result).toEqual({ outcome: 'accepted', status: 204, answer: 'thanks', reason: null })
    expect(requests).toMatchObject([
      {
        method: 'PUT',
        url: `/internal/deliveries/${delivery.id}`,
        headers: { authorization: `Bearer ${TOKEN}`, 'x-request-id': 'request-17' },
        body: delivery.body,
      },
    ])
  })

  test('keeps the path of DISPATCHER_URL', async () => {
    const dispatcher = await scriptedDispatcher(answer(200, accepted))
    servers.push(dispatcher.server)
    await deliverTo(`${dispatcher.url}/behind/a/proxy/`)
    expect(dispatcher.requests[0]?.url).toBe(`/behind/a/proxy/internal/deliveries/${delivery.id}`)
  })

  test.each<[string, Answer]>([
    ['breaks the connection off', breakOff],
    ['is overloaded', refuse(503, 'service_unavailable')],
    ['does not know the token yet', refuse(401, 'unauthorized')],
    ['fails', refuse(500, 'internal_error')],
    ['answers without JSON', (response) => void response.writeHead(200).end('<html>')],
    ['breaks off within its answer', (response) => void response.writeHead(200).write('{', () => response.destroy())],
    ['says that the delivery is still in flight', answer(200, { ...accepted, outcome: 'in_flight' })],
  ])('repeats the same delivery when the dispatcher %s', async (_what, failed) => {
    const { requests, result } = await deliver(failed, failed, answer(200, accepted))
    expect(await result).toMatchObject({ outcome: 'accepted' })
    expect(requests).toHaveLength(3)
    expect(new Set(requests.map(({ url, body }) => JSON.stringify([url, body]))).size).toBe(1)
  })

  test('waits for a dispatcher that is unavailable', async () => {
    const port = await freePort()
    const result = deliverTo(`http://127.0.0.1:${port}`)
    await waitUntil(() => log.text.includes('dispatcher.unavailable'))
    const server = createServer((_request, response) => void response.end(JSON.stringify(accepted)))
    servers.push(server.listen(port, '127.0.0.1'))
    expect(await result).toMatchObject({ outcome: 'accepted' })
    expect(log.text).toContain('dispatcher.available')
    expect(log.text).not.toContain(TOKEN)
  })

  test('counts a delivery that waits, and logs it once after 10 seconds', async () => {
    const busy = refuse(503, 'service_unavailable')
    const { result } = await deliver(
      later(10_000, busy),
      later(20_000, busy),
      later(40_000, busy),
      later(60_000, answer(200, accepted)),
    )
    await result
    const lines = log.lines.filter(({ msg }) => msg === 'delivery.waiting')
    expect(lines).toMatchObject([
      { delivery_id: delivery.id, source_id: delivery.body.source_id, waited_ms: 20_000, request_id: 'request-17' },
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
  ])('ends the run without another request after %i %s', async (status, code, errorClass) => {
    const { requests, result } = await deliver(refuse(status, code))
    await expect(result).rejects.toThrow(errorClass)
    expect(requests).toHaveLength(1)
  })

  test.each<[number, string, string]>([
    [404, 'not_found', 'refused'],
    [422, 'validation_error', 'invalid'],
    [400, 'body_too_large', 'invalid'],
  ])('%i %s is an outcome: %s, and nothing was sent', async (status, code, outcome) => {
    const { result } = await deliver(refuse(status, code))
    expect(await result).toEqual({ outcome, status: null, answer: null, reason: expect.any(String) })
  })

  test('lets a request under way end when the runner stops', async () => {
    let respond: (() => void) | undefined
    const { result } = await deliver((response) => (respond = () => void response.end(JSON.stringify(accepted))))
    await waitUntil(() => respond)
    leased.activeSessions.interruptAll()
    respond?.()
    expect(await result).toMatchObject({ outcome: 'accepted' })
  })

  test('abandons a request under way when the lease is lost', async () => {
    const { requests, result } = await deliver(() => {})
    await waitUntil(() => requests.length === 1)
    leased.activeSessions.markLost(leased.session)
    await expect(result).rejects.toThrow(LeaseLostError)
  })
})

describe('an answer of the dispatcher', () => {
  const outcome = fc.oneof(fc.constantFrom(...DELIVERY_OUTCOMES), fc.jsonValue())
  const delivered = fc.record(
    {
      outcome,
      status: fc.oneof(fc.nat(), fc.double(), fc.jsonValue()),
      answer: fc.jsonValue(),
      reason: fc.jsonValue(),
    },
    { requiredKeys: [] },
  )
  const code = fc.constantFrom('lease_lost', 'organization_suspended', 'service_unavailable', 'not_found')
  const failed = fc.record({
    error: fc.oneof(fc.record({ code: fc.oneof(code, fc.jsonValue()), message: fc.jsonValue() }), fc.jsonValue()),
  })
  const anyBody = fc.oneof(fc.constant(undefined), fc.jsonValue(), delivered, failed)

  test('is understood or reported as invalid, for any content', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.constantFrom(200, 403, 409, 503), fc.integer({ min: 200, max: 599 })),
        anyBody,
        (status, body) => {
          const understood = readResponse({ status, body, journal: undefined })
          const result = understood.kind === 'outcome' && 'status' in understood.result ? understood.result : null
          // Nothing but a 200 says that an endpoint was called.
          const outcomes = status === 200 ? DELIVERY_OUTCOMES : ['refused', 'invalid']
          expect([null, ...outcomes]).toContain(result?.outcome ?? null)
          expect(result?.outcome).not.toBe('in_flight')
          expect(Number.isInteger(result?.status ?? 0)).toBe(true)
          expect(typeof (result?.answer ?? '')).toBe('string')
          expect(typeof (result?.reason ?? '')).toBe('string')
          expect(understood.kind !== 'suspended' || status === 403).toBe(true)
          expect(understood.kind !== 'lease_lost' || status === 409).toBe(true)
        },
      ),
      { seed: 1, numRuns: 1_000 },
    )
  })
})
