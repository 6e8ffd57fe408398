import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect as netConnect, createServer, Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { listen, startCustomerEndpoint } from '@workflow-service/testkit'
import * as fc from 'fast-check'
import type { Connect } from '../../src/outbound/open-connection.ts'
import { createSendRequest } from '../../src/outbound/send-request.ts'
import {
  drips,
  floods,
  type Handler,
  loopback,
  postTo,
  request,
  resultOf,
  says,
  saysAndEnds,
  secrets,
} from './post-to.ts'

const answered = (status: number, text: string | null = null, location: string | null = null): object => ({
  kind: 'answered',
  status,
  text,
  location,
  durationMs: expect.any(Number),
})

describe('a request', () => {
  test('is one POST with exactly the given headers and body', async () => {
    const { result, received } = await postTo(says('HTTP/1.1 204 No Content\r\n\r\n'), {
      path: '/in/ä?x=1&y=%20#fragment',
      body: '{"größe":"👋"}',
      headers: { 'X-Service-Token': 'token', 'X-Request-Id': 'id', 'content-type': 'text/plain', host: 'elsewhere' },
    })
    expect(result).toEqual(answered(204))
    const [head = '', body = ''] = received.split('\r\n\r\n')
    expect(head.replace(/127\.0\.0\.1:\d+/u, 'ENDPOINT').split('\r\n')).toEqual([
      'POST /in/%C3%A4?x=1&y=%20 HTTP/1.1',
      'X-Service-Token: token',
      'X-Request-Id: id',
      'Content-Type: application/json',
      'Host: ENDPOINT',
      'Content-Length: 18',
      'User-Agent: workflow-service/1',
      'Accept-Encoding: identity',
      'Connection: close',
    ])
    expect(Buffer.from(body, 'latin1').toString('utf8')).toBe('{"größe":"👋"}')
  })

  test('has a new connection each time, and no cookie of an earlier answer', async () => {
    const headers = { connection: 'keep-alive', 'set-cookie': 'a=b' }
    const endpoint = await startCustomerEndpoint({ answer: { status: 200, headers, body: 'ok' } })
    const send = createSendRequest({ allowedSubnets: loopback })
    for (let index = 0; index < 3; index++) expect(await send(request(endpoint.url))).toEqual(answered(200, 'ok'))
    await endpoint.close()
    expect(endpoint.connections).toBe(3)
    expect(new Set(endpoint.requests.map(({ remotePort }) => remotePort)).size).toBe(3)
    expect(endpoint.requests.map(({ headers: sent }) => sent.cookie)).toEqual([undefined, undefined, undefined])
  })

  test('rejects only for a header that HTTP forbids, and does not repeat its value', async () => {
    const send = createSendRequest({ allowedSubnets: loopback })
    const endpoint = await startCustomerEndpoint()
    const wrong = send(request(endpoint.url, { headers: { 'X-Request-Id': `a\r\nX-Service-Token: ${secrets.token}` } }))
    await expect(wrong).rejects.toThrow('Invalid character in header content ["X-Request-Id"]')
    await endpoint.close()
    expect(endpoint.requests).toEqual([])
  })
})

describe('the status', () => {
  test.each(['099', '400', '425', '503', '999'])('%s is a rejection, and nothing is sent again', async (status) => {
    const answer = `HTTP/1.1 ${status} No\r\nRetry-After: 0\r\nContent-Length: 2\r\n\r\nno`
    expect(await resultOf(says(answer))).toEqual({
      ...answered(Number(status)),
      rejection: 'no',
      headers: { 'retry-after': '0' },
    })
  })

  test.each([301, 304, 308])('%i is an answer with its location, which is not followed', async (status) => {
    const trap = await startCustomerEndpoint()
    const answer = `HTTP/1.1 ${status} Go\r\nLocation: ${trap.url}/trap\r\nContent-Length: 0\r\n\r\n`
    expect(await resultOf(says(answer))).toEqual(answered(status, null, `${trap.url}/trap`))
    await trap.close()
    expect(trap.connections).toBe(0)
  })

  test.each([
    ['is null without a Location header', 302, '', null],
    ['is null if the answer is no redirect', 201, 'Location: /x\r\n', null],
    [
      'has no control characters and at most 1,000',
      302,
      `Location: /\u0080${'x'.repeat(9000)}\r\n`,
      `/${'x'.repeat(999)}`,
    ],
  ])('the location %s', async (_, status, header, location) => {
    const answer = `HTTP/1.1 ${status} Go\r\n${header}Content-Length: 0\r\n\r\n`
    expect(await resultOf(says(answer))).toEqual(answered(status, null, location))
  })

  test('counts as soon as the headers have arrived, even if the body never does', async () => {
    const answer = 'HTTP/1.1 503 No\r\nContent-Length: 1000000\r\n\r\n'
    expect(await resultOf(says(answer))).toEqual(answered(503))
  })
})

/** Starts a server in another process, which prints its port first, and ends it with the test. */
async function startServer(program: string) {
  const child = spawn(process.execPath, ['--eval', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  const nextLine = async (): Promise<string> => String((await once(child.stdout, 'data'))[0]).trim()
  const end = (): void => void child.kill()
  return { url: `http://127.0.0.1:${await nextLine()}/`, nextLine, [Symbol.dispose]: end }
}

describe('a process that was too busy to read', () => {
  test('still uses an answer that arrived before the deadline', async () => {
    const program = `
      const { createServer } = require('node:http')
      const server = createServer((request, response) => {
        console.log('received')
        request.resume().on('end', () => setTimeout(() => response.end('ok'), 50))
      })
      server.listen(0, '127.0.0.1', () => console.log(server.address().port))
    `
    using server = await startServer(program)
    const { url, nextLine } = server
    const result = createSendRequest({ allowedSubnets: loopback })(request(url, { deadlineMs: 2_000 }))
    await nextLine()
    // Blocks this process until well after the deadline.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_500)
    expect(await result).toEqual(answered(200, 'ok'))
  })

  test('sends nothing once the deadline has passed', async () => {
    const program = `
      const server = require('node:net').createServer((socket) => {
        socket.resume().on('error', () => {}).on('close', () => console.log('read ' + socket.bytesRead))
      })
      server.listen(0, '127.0.0.1', () => console.log(server.address().port))
    `
    using server = await startServer(program)
    const { url, nextLine } = server
    const connecting = Promise.withResolvers<void>()
    const connect: Connect = (options) => {
      process.nextTick(connecting.resolve)
      return netConnect(options)
    }
    const send = createSendRequest({ allowedSubnets: loopback, connect })
    const result = send(request(url, { deadlineMs: 500 }))
    await connecting.promise
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600)
    const [{ kind }, read] = await Promise.all([result, nextLine()])
    expect([kind, read]).toEqual(['timed_out', 'read 0'])
  })
})

describe('the text', () => {
  test.each([
    ['with a Content-Length', withBody('stored as 42'), 'stored as 42'],
    ['in chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nsto\r\n3\r\nred\r\n0\r\n\r\n', 'stored'],
    ['with any 2xx status', 'HTTP/1.1 202 OK\r\nContent-Length: 5\r\n\r\nlater', 'later'],
    ['to the end of the connection', 'HTTP/1.1 200 OK\r\n\r\nstored', 'stored'],
  ])('is read %s', async (_, answer, text) => {
    expect(await resultOf(saysAndEnds(answer))).toMatchObject({ kind: 'answered', text })
  })

  test.each([
    ['is announced as compressed', withBody('plain', 'Content-Encoding: gzip\r\n')],
    ['comes with a redirect', 'HTTP/1.1 302 Go\r\nLocation: /\r\nContent-Length: 2\r\n\r\nno'],
  ])('is null if the body %s', async (_, answer) => {
    expect(await resultOf(says(answer))).toMatchObject({ kind: 'answered', text: null })
  })
})

function withBody(body: string, headers = ''): Buffer {
  const head = `HTTP/1.1 200 OK\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), Buffer.from(body)])
}

const timedOut = (phase: string): object => ({ kind: 'timed_out', phase })
const unreachable = (cause: string): object => ({ kind: 'unreachable', cause })

/** For endpoints that never end. Long enough for what they send before that, also in a process that is delayed. */
const soon = { deadlineMs: 1_500 }

const ok = 'HTTP/1.1 200 OK\r\n'

/** All at once, since each takes the whole time. */
async function resultsOf(handlers: Record<string, Handler>): Promise<Record<string, object>> {
  const results = Object.entries(handlers).map(
    async ([what, handler]) => [what, await resultOf(handler, soon)] as const,
  )
  return Object.fromEntries(await Promise.all(results))
}

describe('a slow endpoint', () => {
  test('times out', async () => {
    const handlers: Record<string, Handler> = {
      'never answers': () => undefined,
      'drips its status line': drips('HTTP/1.1 200 ', 'x'),
      'drips its headers': drips(ok, 'X-Slow: very\r\n'),
      'stops within its headers': says(`${ok}Content-Type: text/plain\r\n`),
      'sends empty lines': drips('', '\r\n'),
      'sends 103 Early Hints endlessly': drips('', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'),
    }
    const results = await resultsOf(handlers)
    for (const what in handlers) expect(results).toMatchObject({ [what]: timedOut('answer') })
  })

  test('counts as answered with 200 from then on, and only the text is lost', async () => {
    const handlers: Record<string, Handler> = {
      'drips its body': drips(`${ok}Content-Length: 1000\r\n\r\n`, 'x'),
      'drips chunks': drips(`${ok}Transfer-Encoding: chunked\r\n\r\n`, '1\r\nx\r\n'),
      'drips a chunk extension': drips(`${ok}Transfer-Encoding: chunked\r\n\r\n1`, ';x'),
      'drips trailers': drips(`${ok}Transfer-Encoding: chunked\r\n\r\n0\r\n`, 'X-Slow: very\r\n'),
      'stops within its body': says(`${ok}Content-Length: 1000\r\n\r\nhello`),
      'never ends a body without length': says(`${ok}\r\nhello`),
      'never begins its body': says(`${ok}Content-Length: 1000\r\n\r\n`),
    }
    const results = await resultsOf(handlers)
    for (const what in handlers) expect(results).toMatchObject({ [what]: answered(200) })
  })

  test('times out in the TLS handshake if it is silent there, and nothing is sent', async () =>
    expect(await resultOf(() => undefined, { when: 'connect', scheme: 'https', ...soon })).toMatchObject(
      timedOut('tls'),
    ))

  test('times out if it does not accept the connection, and nothing is sent', async () => {
    const send = createSendRequest({ allowedSubnets: loopback, connect: () => new Socket() })
    const result = await send(request('http://127.0.0.1:8/', soon))
    expect(result).toMatchObject(timedOut('connect'))
  })
})

describe('an endpoint that sends too much', () => {
  const megabyte = Buffer.alloc(1 << 20, 'x')

  test.each<[string, Handler]>([
    ['an endless body', floods(`${ok}\r\n`, megabyte)],
    [
      'endless chunks',
      floods(`${ok}Transfer-Encoding: chunked\r\n\r\n`, Buffer.from(`1000\r\n${'x'.repeat(4096)}\r\n`)),
    ],
    ['a line of 5,000 bytes', says(`${ok}Content-Length: 5000\r\n\r\n`, Buffer.alloc(5000, 'x'))],
    ['a gzip bomb', says(`${ok}Content-Encoding: gzip\r\n\r\n`, gzipSync(Buffer.alloc(32 << 20)))],
  ])('counts as answered with 200 if it sends %s, and is disconnected', async (_, handler) => {
    const result = await resultOf(handler)
    expect(result).toMatchObject(answered(200))
    // Not at its deadline, which is after 20 s.
    expect(result.durationMs).toBeLessThan(15_000)
  })

  test.each<[string, Handler]>([
    ['one header of 100 KB', says(`${ok}X-Long: ${'x'.repeat(100_000)}\r\n\r\n`)],
    ['endless headers', floods(ok, Buffer.from('X-Many: 1\r\n'.repeat(100)))],
    ['an endless reason phrase', floods('HTTP/1.1 200 ', Buffer.alloc(1000, 'x'))],
    ['endless interim answers', floods('', Buffer.from('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(100)))],
  ])('is unreachable if it sends %s', async (_, handler) =>
    expect(await resultOf(handler)).toMatchObject(unreachable('invalid_answer')),
  )

  test('may send hundreds of interim answers before its answer', async () => {
    const interim = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(500)
    expect(await resultOf(says(interim, `${ok}Content-Length: 2\r\n\r\nok`))).toMatchObject(answered(200, 'ok'))
  })
})

describe('an endpoint that violates HTTP', () => {
  test.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9.9\r\n'],
    ['a NUL in a header', `${ok}X-Nul: a\u0000b\r\n\r\n`],
    ['two lengths', `${ok}Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx`],
    ['a length and chunks', `${ok}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['a request', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'],
  ])('is unreachable if it sends %s', async (_, answer) =>
    expect(await resultOf(saysAndEnds(answer))).toMatchObject(unreachable('invalid_answer')),
  )

  const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
  test('is unreachable if it switches to another protocol', async () =>
    expect(await resultOf(says(upgrade, 'more'))).toMatchObject(unreachable('invalid_answer')))

  test.each<[string, Handler, string | null]>([
    [
      'an offer of another protocol',
      says(`${ok}Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nok`),
      'ok',
    ],
    ['204 with a body', says('HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello'), null],
    ['less than its Content-Length', saysAndEnds(`${ok}Content-Length: 100\r\n\r\nhello`), null],
    ['an invalid chunk length', saysAndEnds(`${ok}Transfer-Encoding: chunked\r\n\r\nZZ\r\nhello`), null],
    ['incomplete chunks', saysAndEnds(`${ok}Transfer-Encoding: chunked\r\n\r\n5\r\nhel`), null],
    ['a second answer', says(`${ok}Content-Length: 1\r\n\r\naHTTP/1.1 500 No\r\nContent-Length: 1\r\n\r\nb`), 'a'],
    ['HTTP/1.0 without a length', saysAndEnds('HTTP/1.0 200 OK\r\n\r\na'), 'a'],
  ])('counts as answered if it sends %s', async (_, handler, text) =>
    expect(await resultOf(handler)).toMatchObject({ kind: 'answered', text }),
  )
})

describe('an endpoint that ends the connection', () => {
  test('is reported as having closed it', async () =>
    expect(await resultOf((socket) => socket.end())).toMatchObject(unreachable('connection_closed')))

  test('is reported as having closed it before the request', async () =>
    expect(
      await resultOf((socket) => socket.end(), {
        when: 'connect',
      }),
    ).toMatchObject({ kind: 'unreachable', cause: expect.stringMatching(/^connection_/u) }))

  test('is reported as having reset it', async () =>
    expect(await resultOf((socket) => socket.resetAndDestroy())).toMatchObject(unreachable('connection_reset')))

  test('counts as answered with 200 if it resets the connection in the body', async () =>
    expect(
      await resultOf((socket) => {
        socket.write(`${ok}Content-Length: 100\r\n\r\nhello`, () => setTimeout(() => socket.resetAndDestroy(), 20))
      }),
    ).toMatchObject(answered(200)))

  test.each(['HTTP/1.1 2', 'HTTP/1.1 200 OK\r\nContent-Ty'])(
    'is unreachable if it sends only the beginning %j of an answer',
    async (piece) => expect(await resultOf(saysAndEnds(piece))).toMatchObject({ kind: 'unreachable' }),
  )

  test('counts as answered if it answers before it has read the request, and then closes the connection', async () => {
    const body = JSON.stringify({ text: 'x'.repeat(200_000) })
    const answers = saysAndEnds('HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
    expect(await resultOf(answers, { when: 'connect', body })).toMatchObject(answered(413))
  })

  test('counts as answered if it answers before it has read the request, and stops reading', async () => {
    const body = JSON.stringify({ text: 'x'.repeat(8_000_000) })
    expect(
      await resultOf(
        (socket) => {
          socket.pause()
          says('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')(socket)
          // A paused socket does not notice that the client disconnected, so the endpoint closes it itself.
          setTimeout(() => socket.destroy(), 100)
        },
        { when: 'connect', body },
      ),
    ).toMatchObject(answered(200, 'ok'))
  })
})

/** Pieces of valid and invalid answers, and any bytes. */
const piece = fc.oneof(
  fc.constantFrom(
    'HTTP/1.1 200 OK\r\n',
    'HTTP/1.1 204 No Content\r\n',
    'HTTP/1.1 302 Found\r\n',
    'HTTP/1.1 100 Continue\r\n\r\n',
    'HTTP/1.1 999 \r\n',
    'HTTP/9.9 200\r\n',
    'Content-Length: 2\r\n',
    'Content-Length: -1\r\n',
    'Content-Length: 99999999999999999999\r\n',
    'Transfer-Encoding: chunked\r\n',
    'Content-Encoding: gzip\r\n',
    'Location: https://x.example/\r\n',
    'Location: \u0000\r\n',
    'Upgrade: h2c\r\n',
    ': empty\r\n',
    '\r\n',
    '2\r\nok\r\n0\r\n\r\n',
    'ok',
    '\n',
  ),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
)
const arbitraryAnswer = fc
  .tuple(fc.constantFrom('HTTP/1.1 200 OK\r\n', ''), fc.array(piece, { maxLength: 6 }))
  .map(([start, pieces]) => Buffer.from(start + pieces.join(''), 'latin1'))

test('for any bytes that an endpoint answers, the result is one of the documented outcomes', async () => {
  const anyStatus = { status: expect.any(Number) }
  const cause = expect.stringMatching(/^(invalid_answer|connection_closed|connection_reset)$/)
  const broken = { kind: 'unreachable', cause }
  let bytes = Buffer.alloc(0)
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.end(bytes))
  })
  const port = await listen(server)
  const send = createSendRequest({ allowedSubnets: loopback })
  const kinds = new Set<string>()
  await fc.assert(
    fc.asyncProperty(arbitraryAnswer, async (generated) => {
      bytes = generated
      const result = await send(request(`http://127.0.0.1:${port}/`))
      kinds.add(result.kind)
      expect(result).toMatchObject(result.kind === 'answered' ? anyStatus : broken)
    }),
    { seed: 20261122, numRuns: 300 },
  )
  expect([...kinds].toSorted()).toEqual(['answered', 'unreachable'])
  server.close()
})
