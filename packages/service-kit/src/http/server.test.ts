import { once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterEach, describe, expect, test } from '@jest/globals'
import { responseState } from './response-state.ts'
import type { ApiError } from './errors.ts'
import { type HttpServer, type HttpServerOptions, startHttpServer } from './server.ts'
import { createLogger } from '../logger.ts'
import { Registry } from '../metrics.ts'
import { startService } from '../start-service.ts'
import { createExpressApp } from './express-app.ts'
import { writeJson } from './write-json.ts'

const running: HttpServer[] = []
const refusals: ApiError[] = []

const onRefusal = (error: ApiError) => refusals.push(error)
const listen = async (listener: RequestListener, options: Partial<HttpServerOptions> = {}): Promise<HttpServer> => {
  const server = await startHttpServer(listener, { host: '127.0.0.1', port: 0, onRefusal, ...options })
  running.push(server)
  return server
}

const start = (options: Partial<HttpServerOptions> = {}, wait = () => Promise.resolve()): Promise<HttpServer> =>
  listen((_req, res) => {
    void wait().then(() => writeJson(res, { status: 200, body: '{}', requestId: 'r1' }))
  }, options)

/** Sends the text; `ended` resolves to all that was received when the connection closes. */
function send({ port }: HttpServer, text: string, allowHalfOpen = false) {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen })
  let received = ''
  socket.setEncoding('utf8').on('data', (more: string) => (received += more))
  socket.write(text)
  const closed = new Promise((resolve) => socket.on('error', () => {}).once('close', resolve))
  return { socket, ended: closed.then(() => received) }
}
const exchange = (server: HttpServer, text: string): Promise<string> => send(server, text).ended

afterEach(async () => {
  refusals.splice(0)
  await Promise.all(running.splice(0).map((server) => server.close(0)))
})

// More than the kernel buffers of a connection.
const LARGE_BODY = 'x'.repeat(32 * 1024 * 1024)

const sendLarge: RequestListener = (req, res) => {
  responseState(res).key = String(req.url)
  void writeJson(res, { status: 200, body: LARGE_BODY, requestId: 'r1' })
}

/** Sends a request, and reads nothing of its response until `countBytes` reads it to the end. */
const call = async (server: HttpServer, path: string): Promise<{ countBytes: () => Promise<number> }> => {
  const before = server.inFlight
  const socket = connect({ host: '127.0.0.1', port: server.port }).pause()
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  while (server.inFlight === before) await nextTurn()
  const countBytes = async (): Promise<number> => {
    const closed = once(socket, 'close')
    socket.on('error', () => {}).resume()
    await closed
    return socket.bytesRead
  }
  return { countBytes }
}

/** Starts a server that answers 401 without reading the body. */
const startRefusing = (onRequest: (req: IncomingMessage) => void | Promise<void> = () => {}) =>
  listen((req, res) => {
    void Promise.resolve(onRequest(req)).then(() => writeJson(res, { status: 401, body: '{}', requestId: 'r1' }))
  })
const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`
const TOO_LARGE = 'The headers are larger than 16 KiB, or more than 1000.'
/** The head of a request with a body. */
const head = (headers: string) => `POST / HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n`

describe('responses that their callers do not read', () => {
  test('are closed when they make no progress', async () => {
    const unreadLimits = { maxBytesPerKey: Infinity, timeoutMs: 50, checkMs: 10 }
    const server = await listen(sendLarge, { unreadLimits })
    const caller = await call(server, '/a')
    while (server.inFlight > 0) await nextTurn()
    expect(await caller.countBytes()).toBeLessThan(LARGE_BODY.length)
  })

  test('are closed, the oldest first, when those of one key have too many bytes', async () => {
    const unreadLimits = { maxBytesPerKey: 1.2 * LARGE_BODY.length, timeoutMs: 60_000, checkMs: 10 }
    const server = await listen(sendLarge, { unreadLimits })
    const callers = [await call(server, '/a'), await call(server, '/b'), await call(server, '/a')]
    while (server.inFlight === 3) await nextTurn()
    const counts = await Promise.all(callers.map(({ countBytes }) => countBytes()))
    expect(counts.map((count) => count > LARGE_BODY.length)).toEqual([false, true, true])
  })

  test('are closed also if they were open-ended before, such as that of a request that waited for a run', async () => {
    const unreadLimits = { maxBytesPerKey: Infinity, timeoutMs: 50, checkMs: 10 }
    const responses: ServerResponse[] = []
    const waitAndSend: RequestListener = (req, res) => {
      responses.push(res)
      setTimeout(() => {
        responseState(res).onStream?.()
        sendLarge(req, res)
      })
    }
    const caller = await call(await listen(waitAndSend, { unreadLimits }), '/a')
    await once(responses[0]!, 'close', { signal: AbortSignal.timeout(5_000) })
    expect(await caller.countBytes()).toBeLessThan(LARGE_BODY.length)
  })
})

describe('startHttpServer', () => {
  test.each([
    ['bytes that are not HTTP', 'rubbish\r\n\r\n', 'The request is not valid HTTP/1.1.'],
    ['a request without Host', 'GET / HTTP/1.1\r\n\r\n', 'The Host header is missing.'],
    ['two Host headers', 'GET / HTTP/1.1\r\nHost: x\r\nhost: x\r\n\r\n', 'The Host header must be sent once.'],
    ['too large headers', `GET / HTTP/1.1\r\nHost: x\r\nA: ${'x'.repeat(20_000)}\r\n\r\n`, TOO_LARGE],
    ['too many headers', `GET / HTTP/1.1\r\nHost: x\r\n${'A: x\r\n'.repeat(1_000)}\r\n`, TOO_LARGE],
  ])('answers %s in the error shape and reports the refusal', async (_what, text, message) => {
    const received = await exchange(await start(), text)
    expect(received).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
    expect(received).toMatch(/\r\nConnection: close\r\n/)
    expect(JSON.parse(received.split('\r\n\r\n')[1] ?? '')).toEqual({
      error: { code: 'invalid_request', message, request_id: expect.any(String) },
    })
    expect(refusals.map((error) => error.message)).toEqual([message])
  })

  test('answers a request that does not arrive in time, but not a connection that has sent nothing', async () => {
    const server = await start({ headersTimeoutMs: 50, requestTimeoutMs: 100, keepAliveTimeoutMs: 60_000 })
    const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
    const { socket: kept, ended } = send(server, request)
    await once(kept, 'data')
    const received = Promise.all(
      ['GET / HTTP/1.1\r\nHost: x\r\n', `${request}GET / HT`].map((text) => exchange(server, text)),
    )
    expect(await exchange(server, '')).toBe('')
    const [slow, second] = await received
    expect(slow).toContain('The request took too long to arrive.')
    expect(second?.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400'])
    expect(refusals).toHaveLength(2)
    // A connection that is kept alive between two requests is left alone.
    kept.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    expect((await ended).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200'])
  })

  test.each([
    ['that does not arrive in time', head('X-Request-Id: mine\r\nContent-Length: 10')],
    ['with a broken body', `${head('X-Request-Id: mine\r\nTransfer-Encoding: chunked')}rubbish`],
    ['without Host', 'GET / HTTP/1.1\r\nX-Request-Id: mine\r\n\r\n'],
  ])('refuses a request %s with the id that its caller has given it', async (_what, text) => {
    const server = await listen(() => {}, { headersTimeoutMs: 50, requestTimeoutMs: 100 })
    const received = await exchange(server, text)
    expect(received).toMatch(/^HTTP\/1\.1 400 [^]*\r\nX-Request-Id: mine\r\n[^]*"request_id":"mine"/)
  })

  test('counts a request whose caller resets the connection in the middle of the body as a 400', async () => {
    const responses: ServerResponse[] = []
    const server = await listen((_req, res) => void responses.push(res))
    const { socket } = send(server, `${head('Content-Length: 10')}x`)
    while (server.inFlight === 0) await nextTurn()
    socket.resetAndDestroy()
    while (server.inFlight > 0) await nextTurn()
    expect(responses.map(({ statusCode }) => statusCode)).toEqual([400])
  })

  describe('answers a request before its body has arrived', () => {
    test('and keeps the connection, if the rest is small', async () => {
      const body = head('Content-Length: 60000') + 'x'.repeat(60_000)
      const received = await exchange(await startRefusing(), body + body + 'rubbish\r\n\r\n')
      expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401', 'HTTP/1.1 401', 'HTTP/1.1 400'])
    })

    test.each(['Content-Length: 1000000000', 'Transfer-Encoding: chunked'])('and closes it with %s', async (header) => {
      const server = await startRefusing()
      // A caller that goes on sending after it has read the response.
      const { socket, ended } = send(server, head(header), true)
      const chunk = header.endsWith('chunked') ? `10000\r\n${'x'.repeat(0x10000)}\r\n` : 'x'.repeat(0x10000)
      const sendMore = (): void => void (socket.writable && socket.write(chunk, () => setTimeout(sendMore, 10)))
      sendMore()
      await once(socket, 'end')
      expect(server.inFlight).toBe(0)
      expect(await ended).toMatch(/^HTTP\/1\.1 401 [^]*\r\nConnection: close\r\n[^]*\{\}$/)
    })

    test.each([
      ['at once', 0],
      ['when as much of it has arrived as the connection keeps', 64 * 1024],
    ])('%s, and reads less than 512 KiB of what its caller goes on sending', async (_when, arrived) => {
      const sockets: Socket[] = []
      const server = await startRefusing(async (req) => {
        sockets.push(req.socket)
        while (req.readableLength < arrived) await nextTurn()
      })
      await exchange(server, head(`Content-Length: ${LARGE_BODY.length}`) + LARGE_BODY)
      expect(sockets[0]!.bytesRead).toBeGreaterThan(64 * 1024)
      expect(sockets[0]!.bytesRead).toBeLessThan(512 * 1024)
    })

    test('and a caller that reads nothing before it has sent 1 MiB gets the response', async () => {
      const socket = connect({ host: '127.0.0.1', port: (await startRefusing()).port }).pause()
      const body = Buffer.alloc(1024 * 1024)
      await promisify<string | Buffer>(socket.write.bind(socket))(head(`Content-Length: ${body.length}`))
      await promisify<string | Buffer>(socket.write.bind(socket))(body)
      expect(String(await once(socket.resume(), 'data'))).toContain('HTTP/1.1 401')
      await once(socket, 'close')
    })
  })

  test.each([
    ['gets its responses', get('/') + get('/'), /^HTTP\/1\.1 100 [^]+HTTP\/1\.1 200 [^]+HTTP\/1\.1 200 /],
    ['gets 400 for a request that is not complete', head('Content-Length: 10'), /^HTTP\/1\.1 400 /],
    ['gets no more of a stream', get('/stream'), /^HTTP\/1\.1 200 [^]+chunked[^]+$/],
    ['gets no late response of HTTP/1.0, which has no probes', get('/').replaceAll('1.1', '1.0'), /^$/],
  ])('a caller that has closed its side %s', async (_what, text, expected) => {
    const gate = Promise.withResolvers<void>()
    const server = await listen(
      (req, res) => {
        if (req.url === '/stream') res.flushHeaders()
        else void gate.promise.then(() => res.end())
      },
      { probeMs: 20 },
    )
    const { socket, ended } = send(server, text, true)
    socket.end().once('data', gate.resolve)
    expect(await ended).toMatch(expected)
  })

  test('counts no request of a connection that was closed, also if several were waiting on it', async () => {
    const server = await start({ probeMs: 20 }, () => new Promise(() => {}))
    const { socket } = send(server, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3))
    while (server.inFlight < 3) await nextTurn()
    socket.destroy()
    while (server.inFlight > 0) await nextTurn()
    expect(server.inFlight).toBe(0)
  })

  test('asks for new connections while it drains, and still accepts them', async () => {
    const gate = Promise.withResolvers<void>()
    const urls: unknown[] = []
    const server = await listen((req, res) => {
      urls.push(req.url)
      if (req.url === '/stream') responseState(res).onStream?.()
      void gate.promise.then(() => writeJson(res, { status: 200, body: '{}', requestId: 'r1' }))
    })
    const before = ['/', '/stream'].map((path) => fetch(`${server.url}${path}`))
    while (urls.length < 2) await nextTurn()
    server.drain()
    const after = fetch(`${server.url}/`)
    while (urls.length < 3) await nextTurn()
    gate.resolve()
    const responses = await Promise.all([...before, after])
    expect(responses.map(({ status, headers }) => `${status} ${headers.get('connection')}`)).toEqual(
      responses.map(() => '200 close'),
    )
  })

  test('answers a stream that has not begun with 503 when it closes, never with an empty success', async () => {
    const begun: ServerResponse[] = []
    const server = await listen((_req, res) => {
      responseState(res).onStream?.()
      begun.push(res)
    })
    const response = exchange(server, 'GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine\r\n\r\n')
    while (begun.length === 0) await nextTurn()
    await server.close(0)
    expect(await response).toMatch(
      /^HTTP\/1\.1 503 [^]*\r\nX-Request-Id: mine\r\nRetry-After: 1\r\n[^]*"code":"service_unavailable"/,
    )
  })

  test('waits a second for requests on connections that were just opened, and no longer for spare ones', async () => {
    const server = await start()
    const [spare, used] = [send(server, ''), send(server, '')]
    await Promise.all([spare, used].map(({ socket }) => once(socket, 'connect')))
    // Once the server has accepted both.
    expect(await exchange(server, 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toMatch(/ 200 OK/)
    const startedMs = performance.now()
    const closed = server.close(30_000)
    used.socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    expect(await used.ended).toMatch(/ 200 OK\r\n[^]*Connection: close\r\n/)
    await closed
    expect(performance.now() - startedMs).toBeLessThan(15_000)
    expect(await spare.ended).toBe('')
  })

  test('closes the remaining connections when the grace period is over', async () => {
    const server = await start({}, () => new Promise(() => {}))
    const response = fetch(`http://127.0.0.1:${server.port}/`)
    response.catch(() => {})
    while (server.inFlight === 0) await nextTurn()
    await server.close(10)
    await expect(response).rejects.toThrow('fetch failed')
  })

  test('names the setting whose port is taken, or whose address is none of this machine', async () => {
    const { port } = await start()
    await expect(start({ port })).rejects.toThrow(`Port ${port} is taken: stop what uses it, or set another PORT.`)
    const logger = createLogger({ service: 'test', level: 'silent' })
    const config = { host: '127.0.0.1', port: 0, metricsPort: port }
    const ctx = { config, logger, metrics: new Registry(), close: async () => {} }
    await expect(startService(ctx, { checks: {}, createApp: createExpressApp })).rejects.toThrow(
      'or set another METRICS_PORT.',
    )
    await expect(start({ host: '192.0.2.1' })).rejects.toThrow('HOST 192.0.2.1 is no address of this machine.')
  })
})
