import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Writable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { createLogger } from '@workflow-service/service-kit'
import { freePort, waitUntil } from '@workflow-service/testkit'
import { createLeasedSession } from '../../test/support/leased-session.ts'
import { LeaseLostError, RunError, RunInterruptedError } from '../run-errors.ts'
import type { ActiveSessions, LeasedSession } from '../sessions/active-sessions.ts'
import { createDispatcherClient, type DispatcherClient, type OutgoingDelivery } from './dispatcher-client.ts'

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
const breakOff: Answer = (_response, request) => void request.socket.resetAndDestroy()

let activeSessions: ActiveSessions
let session: LeasedSession
let delivery: OutgoingDelivery
let logged: string
let client: DispatcherClient | undefined
const servers: { closeAllConnections(): void; close(): void }[] = []

beforeEach(() => {
  ;({ activeSessions, session } = createLeasedSession())
  const { sessionId, epoch, organizationId } = session
  delivery = {
    id: newId(),
    requestId: 'request-17',
    body: {
      organization_id: organizationId,
      source_id: newId(),
      payload: { message: 'hello' },
      run_id: newId(),
      lease: { session_id: sessionId, epoch },
    },
  }
  logged = ''
})
afterEach(async () => {
  await client?.close()
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

async function deliverTo(url: string) {
  const destination = new Writable({
    write(chunk, _encoding, done) {
      logged += String(chunk)
      done()
    },
  })
  const logger = createLogger({ service: 'runner', level: 'debug', destination })
  client = createDispatcherClient({ url, token: TOKEN, connections: 4, logger })
  return await client.deliver(session, delivery)
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
    await waitUntil(() => logged.includes('the dispatcher is unavailable'))
    const server = createServer((_request, response) => void response.end(JSON.stringify(accepted)))
    servers.push(server.listen(port, '127.0.0.1'))
    expect(await result).toMatchObject({ outcome: 'accepted' })
    expect(logged).toContain('the dispatcher is available again')
    expect(logged).not.toContain(TOKEN)
  })

  test('reports a lost lease', async () => {
    const { requests, result } = await deliver(refuse(409, 'lease_lost'))
    await expect(result).rejects.toThrow(LeaseLostError)
    expect(requests).toHaveLength(1)
  })

  test('fails the run when the delivery id belongs to another payload', async () => {
    const { result } = await deliver(refuse(409, 'idempotency_conflict'))
    await expect(result).rejects.toThrow(RunError)
  })

  test.each<[number, string, string]>([
    [404, 'not_found', 'refused'],
    [422, 'validation_error', 'invalid'],
    [400, 'body_too_large', 'invalid'],
  ])('%i %s is an outcome: %s, and nothing was sent', async (status, code, outcome) => {
    const { result } = await deliver(refuse(status, code))
    expect(await result).toEqual({ outcome, status: null, answer: null, reason: expect.any(String) })
  })

  test('stops waiting at once when the runner stops between two requests', async () => {
    const { requests, result } = await deliver(refuse(503, 'service_unavailable'))
    await waitUntil(() => requests.length >= 1)
    activeSessions.interruptAll()
    await expect(result).rejects.toThrow(RunInterruptedError)
  })

  test('lets a request under way end when the runner stops', async () => {
    let respond: (() => void) | undefined
    const { result } = await deliver((response) => (respond = () => void response.end(JSON.stringify(accepted))))
    await waitUntil(() => respond)
    activeSessions.interruptAll()
    respond?.()
    expect(await result).toMatchObject({ outcome: 'accepted' })
  })

  test('abandons a request under way when the lease is lost', async () => {
    const { requests, result } = await deliver(() => {})
    await waitUntil(() => requests.length === 1)
    activeSessions.markLost(session)
    await expect(result).rejects.toThrow(LeaseLostError)
  })
})
