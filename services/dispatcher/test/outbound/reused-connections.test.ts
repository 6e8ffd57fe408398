import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { afterEach, expect, test } from '@jest/globals'
import { createCertificate, listen, waitUntil } from '@workflow-service/testkit'
import { toDeliveryResult } from '../../src/deliveries/describe-outcome.ts'
import type { SentResult } from '../../src/outbound/outbound-result.ts'
import { createSendRequest, type SendRequestOptions } from '../../src/outbound/send-request.ts'
import { loopback, request } from './post-to.ts'

const IDLE_MS = 200
/** For tests that reuse a connection, which have to do so within this time, also in a process that is busy. */
const LONG_IDLE = { idleMs: 1_200 }

type Answer = (request: IncomingMessage, response: ServerResponse) => void

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections()
})

/** Starts an endpoint and a client of it. `send` resolves to the number of the connection, or to the outcome. */
async function startEndpoint(
  answer: Answer = (_, response) => void response.end('stored'),
  client?: SendRequestOptions,
) {
  const connections: Socket[] = []
  let received = 0
  const server = createServer({ keepAliveTimeout: 60_000 }, (incoming, response) => {
    received += 1
    incoming.resume().once('end', () => answer(incoming, response))
  })
  servers.push(server.on('connection', (socket: Socket) => connections.push(socket)))
  const port = await listen(server)
  const sendRequest = createSendRequest({ allowedSubnets: loopback, idleMs: IDLE_MS, ...client })
  const send = async (reuseKey: string | null = 'source', host = '127.0.0.1'): Promise<number | string> => {
    const result = await sendRequest(request(`http://${host}:${port}/hook`, { reuseKey: reuseKey ?? undefined }))
    if (result.kind === 'answered') return connections.length
    return toDeliveryResult(result as SentResult, (text) => text).outcome
  }
  const isClosed = (index: number): Promise<boolean> => waitUntil(() => connections[index]?.destroyed === true)
  /** Sends a first request, whose connection is kept without being used. */
  const prove = async (): Promise<void> => {
    await send()
    await isClosed(0)
  }
  return { port, connections, send, prove, isClosed, received: () => received }
}

test('an endpoint that leaves an unused connection open gets its next payloads on one, until it closes one early', async () => {
  const { send, prove, connections } = await startEndpoint(undefined, LONG_IDLE)
  await prove()
  expect([await send(), await send(), await send()]).toEqual([2, 2, 2])
  // It has to prove itself again.
  connections[1]!.destroy()
  await waitUntil(async () => (await send()) === 3)
  expect(await send()).toBe(4)
})

test('an encrypted connection is reused without another handshake', async () => {
  const certificate = await createCertificate({ names: ['127.0.0.1'] })
  let handshakes = 0
  const server = createHttpsServer({ ...certificate, keepAliveTimeout: 60_000 }, (_, response) =>
    response.end('stored'),
  )
  servers.push(server.on('secureConnection', () => (handshakes += 1)))
  const url = `https://127.0.0.1:${await listen(server)}/hook`
  const sendRequest = createSendRequest({ allowedSubnets: loopback, ...LONG_IDLE, ca: certificate.cert })
  const send = (): ReturnType<typeof sendRequest> => sendRequest(request(url, { reuseKey: 'source' }))
  await send()
  await pause(LONG_IDLE.idleMs + 50)
  for (let sent = 0; sent < 5; sent += 1) expect(await send()).toMatchObject({ kind: 'answered', text: 'stored' })
  expect(handshakes).toBe(2)
})

test('a connection is kept for the payloads of one source, and never for a verification', async () => {
  const { send, prove } = await startEndpoint()
  await prove()
  expect([await send(), await send('other source'), await send(null)]).toEqual([2, 3, 4])
})

test('requests at the same time have a connection each', async () => {
  const { send, prove, connections } = await startEndpoint((_, response) => setTimeout(() => response.end(), 20))
  await prove()
  await Promise.all([send(), send(), send()])
  expect(connections).toHaveLength(4)
})

test('a connection is reused only for an address that the name still has', async () => {
  let addresses = ['127.0.0.1']
  const resolver = { resolve: async () => addresses, close: () => undefined }
  const { port, send, prove, connections } = await startEndpoint(undefined, { resolver, ...LONG_IDLE })
  const second = createServer((_, response) => response.end()).listen(port, '127.0.0.2')
  servers.push(second)
  let moved = 0
  second.on('connection', () => (moved += 1))
  await prove()
  await send('source', 'hooks.example.com')
  await waitUntil(() => connections[1]?.destroyed === true)
  await send('source', 'hooks.example.com')
  expect(await send('source', 'hooks.example.com')).toBe(3)
  addresses = ['127.0.0.2']
  await send('source', 'hooks.example.com')
  expect(moved).toBe(1)
})

test('a delay of the service does not prove a connection that its endpoint has closed meanwhile', async () => {
  const { send, connections } = await startEndpoint()
  await send()
  connections[0]!.destroy()
  const endMs = performance.now() + 2 * IDLE_MS
  while (performance.now() < endMs);
  await nextTurn()
  expect([await send(), await send()]).toEqual([2, 3])
})

test.each([0, 5, 50, 120])(
  'no payload meets the end of a connection that is closed %p ms after an answer',
  async (ms) => {
    const { send } = await startEndpoint((incoming, response) => {
      response.end('stored')
      setTimeout(() => incoming.socket.destroy(), ms)
    }, LONG_IDLE)
    for (let sent = 1; sent <= 40; sent += 1) {
      expect(await send()).toBe(sent)
      await pause(sent % 8)
    }
  },
)

test('a reused connection that ends without an answer gives an unknown outcome, and nothing is sent again', async () => {
  let ends = false
  const { send, prove, received } = await startEndpoint((incoming, response) => {
    if (ends) incoming.socket.destroy()
    else response.end()
  }, LONG_IDLE)
  await prove()
  await send()
  ends = true
  expect(await send()).toBe('unknown')
  expect(received()).toBe(3)
  // Not reused: the connection was closed.
  expect(await send()).toBe('unreachable')
})

test.each<[string, Answer, afterwards: ((socket: Socket) => unknown) | null]>([
  // Not before the answer was read: what comes together with it is dropped.
  ['sends bytes unasked', (_, response) => response.end('ok'), (socket) => socket.write('HTTP/1.1 200')],
  ['announces a shorter time', (_, response) => response.setHeader('Keep-Alive', 'timeout=0').end(), null],
  ['says that it closes', (_, response) => response.setHeader('Connection', 'close').end(), null],
])('an endpoint that %s gets a new connection for the next payload', async (_, answer, afterwards) => {
  let isProven = false
  const { send, prove, connections } = await startEndpoint(
    (incoming, response) => (isProven ? answer(incoming, response) : response.end()),
    LONG_IDLE,
  )
  await prove()
  isProven = true
  for (const number of [2, 3, 4]) {
    expect(await send()).toBe(number)
    afterwards?.(connections[number - 1]!)
    // Long before it has been unused for its time.
    await waitUntil(() => connections[number - 1]!.destroyed, { timeoutMs: LONG_IDLE.idleMs * 0.75 })
  }
})

test('a body that is not read to its end closes the connection', async () => {
  const { send, isClosed } = await startEndpoint((_, response) => response.end('x'.repeat(100_000)))
  expect(await send()).toBe(1)
  await isClosed(0)
  expect(await send()).toBe(2)
})
