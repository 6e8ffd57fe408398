import { createServer } from 'node:net'
import { expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { createSendRequest } from '../../src/outbound/send-request.ts'
import { listenOn, loopback, request } from './post-to.ts'

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
const answer = fc
  .tuple(fc.constantFrom('HTTP/1.1 200 OK\r\n', ''), fc.array(piece, { maxLength: 6 }))
  .map(([start, pieces]) => Buffer.from(start + pieces.join(''), 'latin1'))

const answered = { kind: 'answered', status: expect.any(Number) }
const broken = {
  kind: 'unreachable',
  cause: expect.stringMatching(/^(invalid_answer|connection_closed|connection_reset)$/),
}

test('for any bytes that an endpoint answers, the result is one of the documented outcomes', async () => {
  let bytes = Buffer.alloc(0)
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.end(bytes))
  })
  const port = await listenOn(server)
  const send = createSendRequest({ allowedSubnets: loopback })
  const kinds = new Set<string>()
  await fc.assert(
    fc.asyncProperty(answer, async (generated) => {
      bytes = generated
      const result = await send(request(`http://127.0.0.1:${port}/`))
      kinds.add(result.kind)
      const documented = result.kind === 'answered' ? answered : broken
      expect(result).toMatchObject(documented)
    }),
    { seed: 20261122, numRuns: 700 },
  )
  expect([...kinds].toSorted()).toEqual(['answered', 'unreachable'])
  server.close()
}, 120_000)
