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
const READ = { id: 'read', method: 'get', path: '/read' } as const

/** Serves a stream and another operation, with one slot for both. */
async function start(): Promise<HttpServer> {
  const operations = serveOperations({
    operations: { follow: STREAM, read: READ },
    authorize: () => {},
    handlers: {
      follow: () => ({
        stream: (_req, res) => void res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n'),
      }),
      read: () => ({ status: 200, body: {}, headers: ['X-One', '1', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2'] }),
    },
    bodyLimits: () => ({ maxBytes: 1_000 }),
    slots: { total: 1, perKey: 1, keyOf: () => 'all', metrics: new Registry() },
    handlerTimeoutMs: 50,
  })
  const app = express().use(assignRequestId, operations, handleErrors({ error: () => {}, warn: () => {} } as never))
  const server = await startHttpServer(app, { host: '127.0.0.1', port: 0 })
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

test('an answer carries the headers of its handler, also the same one twice', async () => {
  const server = await start()
  const { headers } = await fetch(`${server.url}/read`)
  expect([headers.get('x-one'), headers.getSetCookie()]).toEqual(['1', ['a=1', 'b=2']])
})
