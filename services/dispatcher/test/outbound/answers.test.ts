import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect as netConnect } from 'node:net'
import { describe, expect, test } from '@jest/globals'
import { startCustomerEndpoint } from '@workflow-service/testkit'
import type { Connect } from '../../src/outbound/open-connection.ts'
import { createSendRequest } from '../../src/outbound/send-request.ts'
import { loopback, postTo, request, resultOf, says, saysAndEnds, secrets } from './post-to.ts'

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

/** Starts a server in another process, which prints its port first. */
async function startServer(program: string) {
  const child = spawn(process.execPath, ['--eval', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  const nextLine = async (): Promise<string> => String((await once(child.stdout, 'data'))[0]).trim()
  return { url: `http://127.0.0.1:${await nextLine()}/`, nextLine, kill: () => child.kill() }
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
    const { url, nextLine, kill } = await startServer(program)
    const result = createSendRequest({ allowedSubnets: loopback })(request(url, { deadlineMs: 1000 }))
    await nextLine()
    // Blocks this process until well after the deadline.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500)
    expect(await result).toEqual(answered(200, 'ok'))
    kill()
  })

  test('sends nothing once the deadline has passed', async () => {
    const program = `
      const server = require('node:net').createServer((socket) => {
        socket.resume().on('error', () => {}).on('close', () => console.log('read ' + socket.bytesRead))
      })
      server.listen(0, '127.0.0.1', () => console.log(server.address().port))
    `
    const { url, nextLine, kill } = await startServer(program)
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
    kill()
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
