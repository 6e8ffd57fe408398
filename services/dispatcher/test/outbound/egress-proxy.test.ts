import { createServer } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import {
  createCertificate,
  type CustomerEndpoint,
  freePort,
  listen,
  startCustomerEndpoint,
} from '@workflow-service/testkit'
import { parseEgressProxy } from '../../src/outbound/egress-proxy.ts'
import type { OutboundResult } from '../../src/outbound/outbound-result.ts'
import type { NameResolver } from '../../src/outbound/resolver.ts'
import { createSendRequest } from '../../src/outbound/send-request.ts'
import type { OutboundRequest, SendRequestOptions } from '../../src/outbound/send-request.ts'
import { loopback, request, secrets } from './post-to.ts'

/** A CONNECT proxy. By default it tunnels every request to the endpoint; tests replace `behave`. */
let proxy: {
  port: number
  requests: { authority: string; headers: IncomingHttpHeaders }[]
  behave: (socket: Socket) => void
  close(): void
}
let endpoint: CustomerEndpoint

beforeEach(async () => {
  endpoint = await startCustomerEndpoint({ answer: { status: 200, body: 'ok' } })
  const sockets = new Set<Socket>()
  const requests: { authority: string; headers: IncomingHttpHeaders }[] = []
  const server = createServer((_, response) => response.writeHead(599).end())
  server.on('connection', (socket: Socket) => sockets.add(socket))
  server.on('connect', (incoming, socket: Socket) => {
    requests.push({ authority: incoming.url ?? '', headers: incoming.headers })
    socket.on('error', () => undefined)
    proxy.behave(socket)
  })
  proxy = {
    port: await listen(server),
    requests,
    behave: tunnelTo(endpoint.port),
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
})

afterEach(async () => {
  proxy.close()
  await endpoint.close()
})

function tunnelTo(port: number): (socket: Socket) => void {
  return (socket) => {
    const onward = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      onward.pipe(socket).pipe(onward)
    })
    onward.on('error', () => socket.destroy())
    socket.on('close', () => onward.destroy())
  }
}

/** Rejects, because with a proxy no name may be looked up here. */
const noResolver: NameResolver = {
  resolve: () => Promise.reject(new Error('a name was looked up')),
  close: () => undefined,
}

function post(
  url: string,
  {
    proxyUrl,
    changes,
    ...options
  }: SendRequestOptions & { proxyUrl?: string; changes?: Partial<OutboundRequest> } = {},
): Promise<OutboundResult> {
  const egressProxy = parseEgressProxy(proxyUrl ?? `http://127.0.0.1:${proxy.port}`)
  return createSendRequest({ resolver: noResolver, egressProxy, ...options })(request(url, changes))
}

const tlsError = (why: string) => ({ kind: 'unreachable', cause: 'tls', detail: expect.stringContaining(why) })

describe('through an egress proxy', () => {
  test('an HTTP request goes through a tunnel, and the CONNECT request has neither token nor body', async () => {
    const result = await post('http://hooks.example.com/in')
    expect(result).toMatchObject({ kind: 'answered', status: 200, text: 'ok' })
    expect(proxy.requests).toEqual([
      { authority: 'hooks.example.com:80', headers: { host: 'hooks.example.com:80', connection: 'close' } },
    ])
    expect(endpoint.requests).toHaveLength(1)
    expect(endpoint.requests[0]).toMatchObject({ method: 'POST', path: '/in', headers: { host: 'hooks.example.com' } })
  })

  test('an HTTPS request does its TLS handshake with the endpoint, and checks its name', async () => {
    const certificate = await createCertificate({ names: ['hooks.example.com'] })
    await using secure = await startCustomerEndpoint({ answer: { status: 200, body: 'ok' }, tls: certificate })
    proxy.behave = tunnelTo(secure.port)
    const trusted = await post('https://hooks.example.com:8443/in', { ca: certificate.cert })
    const untrusted = await post('https://hooks.example.com:8443/in')
    const misnamed = await post('https://other.example.com/in', { ca: certificate.cert })
    expect(trusted).toMatchObject({ kind: 'answered', status: 200, text: 'ok' })
    expect(untrusted).toMatchObject(tlsError('self-signed'))
    expect(misnamed).toMatchObject(tlsError('another host name'))
    expect(proxy.requests.map(({ authority }) => authority)).toEqual([
      'hooks.example.com:8443',
      'hooks.example.com:8443',
      'other.example.com:443',
    ])
  })

  test('an IPv6 address is written in brackets', async () => {
    await post('http://[2606:4700::1]:8080/')
    expect(proxy.requests[0]?.authority).toBe('[2606:4700::1]:8080')
  })

  test.each(['http://127.0.0.1/', 'http://169.254.169.254/', 'http://[::1]/', 'http://localhost/', 'http://0x7f.1/'])(
    '%s is refused before the proxy is used',
    async (url) => {
      expect(await post(url)).toMatchObject({ kind: 'refused' })
      expect(proxy.requests).toEqual([])
    },
  )

  test('user name and password are sent only to the proxy', async () => {
    await post('http://hooks.example.com/', { proxyUrl: `http://ada:s%40crets@127.0.0.1:${proxy.port}` })
    const authorization = `Basic ${Buffer.from('ada:s@crets').toString('base64')}`
    expect(proxy.requests[0]?.headers['proxy-authorization']).toBe(authorization)
    expect(JSON.stringify(endpoint.requests[0]?.headers)).not.toContain(authorization)
  })

  const denial = 'Egress proxying is denied to host "10.0.0.1:80": deny: private range'
  const refused = { kind: 'refused' }
  const beyondProxy = { kind: 'unreachable', cause: 'beyond_proxy' }
  const unavailable = { kind: 'unavailable' }
  test.each<[status: string, header: string, outcome: object, detail: string, reason?: string]>([
    [
      '407 Request rejected by proxy',
      `X-Smokescreen-Error: ${denial}`,
      refused,
      'does not let requests through',
      denial,
    ],
    [
      '407 No',
      `X-Smokescreen-Error: no\u00ff\u0080 ${'x'.repeat(1000)}`,
      refused,
      '(status 407)',
      `no ${'x'.repeat(197)}`,
    ],
    [
      '403 Forbidden',
      'X-Other: a',
      refused,
      'the egress proxy does not let requests through to this endpoint (status 403)',
    ],
    ['502 No', 'X-Other: a', beyondProxy, 'the egress proxy could not reach the endpoint'],
    ['504 No', 'X-Other: a', beyondProxy, 'the egress proxy could not reach the endpoint'],
    ['503 No', 'X-Squid-Error: ERR_CONNECT_FAIL 111', beyondProxy, '(status 503)', 'ERR_CONNECT_FAIL 111'],
    ['503 No', 'X-Squid-Error: ERR_DNS_FAIL 0', beyondProxy, '(status 503)', 'ERR_DNS_FAIL 0'],
    ['500 No', 'X-Squid-Error: ERR_CANNOT_FORWARD 0', beyondProxy, '(status 500)', 'ERR_CANNOT_FORWARD 0'],
    ['503 No', 'X-Squid-Error: ERR_TOO_BIG 0', unavailable, '(status 503)', 'ERR_TOO_BIG 0'],
    ['407 No', 'Proxy-Authenticate: Basic realm="a"', unavailable, 'refuses its credentials (status 407)'],
    ['408 No', 'X-Other: a', unavailable, "the service's own egress proxy failed"],
    ['429 No', 'Retry-After: 1', unavailable, "the service's own egress proxy failed"],
    ['500 No', 'X-Other: a', unavailable, "the service's own egress proxy failed"],
    ['503 No', 'X-Other: a', unavailable, "the service's own egress proxy failed"],
    ['301 No', 'X-Other: a', unavailable, "the service's own egress proxy failed"],
  ])('status %s is not taken for an answer of the endpoint; only the log has its reason', async (...row) => {
    const [status, header, outcome, detail, reason = ''] = row
    proxy.behave = (socket) => socket.write(`HTTP/1.1 ${status}\r\n${header}\r\nContent-Length: 0\r\n\r\n`, 'latin1')
    const result = await post('http://hooks.example.com/')
    expect(result).toMatchObject({
      ...outcome,
      detail: expect.stringContaining(detail),
      internalDetail: `the egress proxy answered ${parseInt(status)} ${reason}`.trim(),
    })
    for (const secret of Object.values(secrets)) expect(JSON.stringify(result)).not.toContain(secret)
  })

  const invalid = 'closed the connection or sent an invalid answer'
  test.each<[string, (socket: Socket) => void, detail: string]>([
    ['does not send HTTP', (socket) => socket.end('SSH-2.0-OpenSSH\r\n'), invalid],
    ['closes the connection', (socket) => socket.end(), invalid],
    ['resets the connection', (socket) => socket.resetAndDestroy(), invalid],
    ['answers nothing', () => undefined, 'does not answer'],
  ])('a proxy that %s makes the service unavailable, and says nothing of the endpoint', async (_, behave, detail) => {
    proxy.behave = behave
    const changes = detail === invalid ? {} : { deadlineMs: 200 }
    const result = await post('http://hooks.example.com/', { changes })
    expect(result).toMatchObject({ ...unavailable, detail: `the service's own egress proxy ${detail}` })
    for (const secret of Object.values(secrets)) expect(JSON.stringify(result)).not.toContain(secret)
  })

  test('an unreachable proxy makes the service unavailable, not the endpoint unreachable', async () => {
    const result = await post('http://hooks.example.com/', { proxyUrl: `http://127.0.0.1:${await freePort()}` })
    expect(result).toMatchObject({ ...unavailable, detail: "the service's own egress proxy cannot be reached" })
  })

  test.each([403, 503])(
    'an endpoint to which a proxy finds no connection in time has timed out: of another host, the proxy says %i',
    async (status) => {
      proxy.behave = (socket) => {
        const isEndpoint = proxy.requests.at(-1)?.authority.startsWith('hooks.')
        if (!isEndpoint) socket.write(`HTTP/1.1 ${status} No\r\nContent-Length: 0\r\n\r\n`)
      }
      const result = await post('http://hooks.example.com/', { changes: { deadlineMs: 1_000 } })
      expect(result).toMatchObject({ kind: 'timed_out', phase: 'connect' })
      expect(proxy.requests.map(({ authority }) => authority)).toEqual(['hooks.example.com:80', 'absent.invalid:443'])
    },
  )

  test('an endpoint that was sent the request has timed out, also if the proxy opens no other tunnel', async () => {
    let opening: Socket | undefined
    proxy.behave = (socket) => {
      if (!opening) {
        opening = socket
        return
      }
      opening.write('HTTP/1.1 200 Connection established\r\n\r\n')
      opening.once('data', () => socket.destroy())
    }
    const result = await post('http://hooks.example.com/', { changes: { deadlineMs: 1_000 } })
    expect(result).toMatchObject({ kind: 'timed_out', phase: 'answer' })
    expect(proxy.requests.map(({ authority }) => authority)).toEqual(['hooks.example.com:80', 'absent.invalid:443'])
  })

  test('an endpoint that closes the connection is reported as without a proxy', async () => {
    proxy.behave = (socket) => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      socket.once('data', () => socket.end())
    }
    const result = await post('http://hooks.example.com/')
    expect(result).toMatchObject({ kind: 'unreachable', cause: 'connection_closed' })
  })

  test("an answer that arrives in one packet with the proxy's answer is read", async () => {
    proxy.behave = (socket) => {
      socket.write('HTTP/1.1 200 Established\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly')
    }
    expect(await post('http://hooks.example.com/')).toMatchObject({ kind: 'answered', status: 200, text: 'early' })
  })

  test('a name of a private network is left to the proxy if subnets are allowed', async () => {
    expect(await post('http://customer/', { allowedSubnets: loopback })).toMatchObject({ kind: 'answered' })
    expect(proxy.requests[0]?.authority).toBe('customer:80')
  })
})

describe('parseEgressProxy', () => {
  test.each([
    ['', null],
    ['  ', null],
    ['http://smokescreen:4750', { host: 'smokescreen', port: 4750, authorization: null }],
    ['http://smokescreen:4750/', { host: 'smokescreen', port: 4750, authorization: null }],
    ['http://10.0.0.5', { host: '10.0.0.5', port: 80, authorization: null }],
    ['http://[fd00::5]:4750', { host: 'fd00::5', port: 4750, authorization: null }],
    ['http://a:b@proxy:1', { host: 'proxy', port: 1, authorization: 'Basic YTpi' }],
  ])('reads %j', (text, expected) => expect(parseEgressProxy(text)).toEqual(expected))

  test.each([
    'smokescreen:4750',
    'https://proxy:1',
    'socks5://proxy:1',
    'http://proxy/path',
    'http://proxy?x',
    'http://:1',
  ])('rejects %j', (text) => {
    expect(() => parseEgressProxy(text)).toThrow(/^must be the URL of an HTTP CONNECT proxy$/)
  })

  test('rejects a broken escape without repeating it', () => {
    expect(() => parseEgressProxy('http://user:secret%ff@proxy')).toThrow(/^[^%]* with a broken percent escape$/)
  })
})
