import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import express from 'express'
import { afterEach, expect, test } from '@jest/globals'
import { Registry } from '../metrics.ts'
import { serveOperations } from './operations.ts'
import { handleErrors } from './errors.ts'
import { assignRequestId } from './request-id.ts'
import { type HttpServer, startHttpServer } from './server.ts'

const running: HttpServer[] = []
afterEach(() => Promise.all(running.splice(0).map((server) => server.close(0))))

const STREAM = { id: 'follow', method: 'get', path: '/follow' } as const
const LINES = { id: 'lines', method: 'get', path: '/lines' } as const
const READ = { id: 'read', method: 'get', path: '/read' } as const

/** Serves a stream, lines and another operation, with one slot for all. */
async function start(lines: readonly Promise<object>[] = []): Promise<HttpServer> {
  const operations = serveOperations({
    operations: { follow: STREAM, lines: LINES, read: READ },
    authorize: () => {},
    handlers: {
      follow: () => ({
        stream: (_req, res) => void res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n'),
      }),
      lines: () => ({ lines }),
      read: () => ({ status: 200, body: {}, headers: { 'X-One': '1', 'Set-Cookie': ['a=1', 'b=2'] } }),
    },
    bodyLimits: () => ({ maxBytes: 1_000 }),
    slots: { total: 1, perKey: 1, keyOf: () => 'all', metrics: new Registry() },
    handlerTimeoutMs: 50,
  })
  const app = express().use(assignRequestId, operations, handleErrors({ error: () => {}, warn: () => {} } as never))
  const server = await startHttpServer(app, { host: '127.0.0.1', port: 0, keepAliveTimeoutMs: 60_000 })
  running.push(server)
  return server
}

test('an open stream takes no slot, counts as no request in flight, and ends when the server stops', async () => {
  const server = await start()
  const streams = await Promise.all([1, 2].map(() => fetch(`${server.url}/follow`)))
  expect(streams.map(({ status }) => status)).toEqual([200, 200])
  expect(server.inFlight).toBe(0)
  expect((await fetch(`${server.url}/read`)).status).toBe(200)
  const startedMs = performance.now()
  await server.close(20_000)
  expect(performance.now() - startedMs).toBeLessThan(10_000)
  expect(await Promise.all(streams.map((stream) => stream.text()))).toEqual(['data: 1\n\n', 'data: 1\n\n'])
})

test('a response carries the headers of its handler, also the same one twice', async () => {
  const server = await start()
  const { headers } = await fetch(`${server.url}/read`)
  expect([headers.get('x-one'), headers.getSetCookie()]).toEqual(['1', ['a=1', 'b=2']])
})

test('lines are sent as they come; until the last, the response takes a slot and holds up a stop', async () => {
  const [first, second] = [Promise.withResolvers<object>(), Promise.withResolvers<object>()]
  const server = await start([first.promise, second.promise])
  const response = fetch(`${server.url}/lines`)
  second.resolve({ second: 'line\n' })
  const { body, headers } = await response
  expect(headers.get('content-type')).toBe('application/x-ndjson')
  const reader = body!.pipeThrough(new TextDecoderStream()).getReader()
  expect(await reader.read()).toMatchObject({ value: '{"second":"line\\n"}\n' })
  expect((await fetch(`${server.url}/read`)).status).toBe(503)
  const closed = server.close(20_000)
  first.resolve({ first: 1 })
  expect(await reader.read()).toMatchObject({ value: '{"first":1}\n' })
  expect(await reader.read()).toMatchObject({ done: true })
  await closed
})

test('a connection whose lines outlast the begin of a stop is closed after the last', async () => {
  const line = Promise.withResolvers<object>()
  const server = await start([Promise.resolve({}), line.promise])
  const agent = new Agent({ keepAlive: true })
  const call = get(`${server.url}/lines`, { agent })
  const [response] = (await once(call, 'response')) as [IncomingMessage]
  server.drain()
  line.resolve({})
  const closed = once(response.socket, 'close')
  await once(response.resume(), 'end')
  await expect(closed).resolves.toEqual([false])
  agent.destroy()
})

test('lines of a caller that is gone are not written', async () => {
  const line = Promise.withResolvers<object>()
  const server = await start([Promise.resolve({}), line.promise])
  const caller = new AbortController()
  const { body } = await fetch(`${server.url}/lines`, { signal: caller.signal })
  await body!.getReader().read()
  caller.abort()
  while (server.inFlight > 0) await nextTurn()
  line.resolve({})
  expect((await fetch(`${server.url}/read`)).status).toBe(200)
})
