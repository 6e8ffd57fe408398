import { createServer } from 'node:net'
import type { Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { TlsOptions, TLSSocket } from 'node:tls'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { createCertificate, listen } from '@workflow-service/testkit'
import type { NameResolver } from '../../src/outbound/resolver.ts'
import { createSendRequest } from '../../src/outbound/send-request.ts'
import type { OutboundResult } from '../../src/outbound/outbound-result.ts'
import type { SendRequestOptions } from '../../src/outbound/send-request.ts'
import { resultOf, type Handler, loopback, request, says, secrets } from './post-to.ts'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/** Resolves every name to 127.0.0.1. */
const resolver: NameResolver = {
  resolve: () => Promise.resolve(['127.0.0.1']),
  close: () => undefined,
}

type Certificate = Awaited<ReturnType<typeof createCertificate>>
let authority: Certificate
let good: Certificate

beforeAll(async () => {
  authority = await createCertificate({ names: ['Test Authority'] })
  good = await createCertificate({ names: ['hooks.example.com', '127.0.0.1'], issuer: authority })
})

interface Seen {
  servername: string | false | null
  alpn: string | false | null
  version: string | null
  isResumed: boolean
  sentPlain: string
}

/** Posts `times` to a TLS server on loopback under the name of `host`. Returns the last result. */
async function postOverTls(
  serverOptions: TlsOptions,
  { host = 'hooks.example.com', times = 1, ...client }: SendRequestOptions & { host?: string; times?: number } = {},
): Promise<{ result: OutboundResult | undefined; seen: Seen[]; connections: number }> {
  const seen: Seen[] = []
  const sockets = new Set<Socket>()
  let connections = 0
  const server = createTlsServer(serverOptions, (socket: TLSSocket) => {
    const entry: Seen = {
      servername: socket.servername,
      alpn: socket.alpnProtocol,
      version: socket.getProtocol(),
      isResumed: socket.isSessionReused(),
      sentPlain: '',
    }
    seen.push(entry)
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => {
      entry.sentPlain += chunk.toString('utf8')
      if (entry.sentPlain.includes(secrets.body)) says(ok)(socket)
    })
  })
  server.on('tlsClientError', () => undefined)
  server.on('connection', (socket: Socket) => {
    connections++
    sockets.add(socket)
    socket.on('error', () => undefined)
  })
  const port = await listen(server)
  const send = createSendRequest({ allowedSubnets: loopback, resolver, ca: authority.cert, ...client })
  let result: OutboundResult | undefined
  for (let sent = 0; sent < times; sent += 1) result = await send(request(`https://${host}:${port}/hook`))
  for (const socket of sockets) socket.destroy()
  server.close()
  return { result, seen, connections }
}

describe('a TLS endpoint', () => {
  test('with a valid certificate gets the request over HTTP/1.1, with its name in SNI', async () => {
    const { result, seen, connections } = await postOverTls({ ...good, ALPNProtocols: ['h2', 'http/1.1'] })
    expect(result).toMatchObject({ kind: 'answered', status: 200, text: 'ok' })
    expect(connections).toBe(1)
    expect(seen).toMatchObject([{ servername: 'hooks.example.com', alpn: 'http/1.1', version: 'TLSv1.3' }])
    expect(seen[0]?.sentPlain).toMatch(/^POST \/hook HTTP\/1\.1\r\n/u)
  })

  test('may use TLS 1.2', async () => {
    const { result, seen } = await postOverTls({ ...good, maxVersion: 'TLSv1.2' })
    expect(result).toMatchObject({ kind: 'answered', status: 200 })
    expect(seen[0]?.version).toBe('TLSv1.2')
  })

  test('gets no SNI if the URL has an address', async () => {
    const { result, seen } = await postOverTls(good, { host: '127.0.0.1' })
    expect(result).toMatchObject({ kind: 'answered', status: 200 })
    expect(seen[0]?.servername).toBe(false)
  })

  test('does not resume the TLS session of an earlier request', async () => {
    const { seen } = await postOverTls(good, { times: 3 })
    expect(seen.map(({ isResumed }) => isResumed)).toEqual([false, false, false])
  })

  const names = ['hooks.example.com']
  test.each<[string, Partial<Parameters<typeof createCertificate>[0]>, detail: string, client?: object]>([
    ['has expired', { isExpired: true }, 'has expired'],
    ['is not valid yet', { isNotYetValid: true }, 'is not valid yet'],
    ['is self-signed', { issuer: undefined }, 'is self-signed'],
    ['is for another name', { names: ['other.example.com', '127.0.0.1'] }, 'is for another host name'],
    ['is for the address, not the name', { names: ['127.0.0.1'] }, 'is for another host name'],
    ['is for the name, not the address', {}, 'is for another host name', { host: '127.0.0.1' }],
    ['is of an authority that is not given', {}, 'was not issued by a trusted authority', { ca: undefined }],
  ])('gets nothing if its certificate %s', async (_, change, detail, client = {}) => {
    const certificate = await createCertificate({ names, issuer: authority, ...change })
    const { result, seen } = await postOverTls(certificate, client)
    expect(result).toMatchObject({ kind: 'unreachable', cause: 'tls' })
    expect(result).toHaveProperty('detail', expect.stringContaining(`the certificate ${detail}`))
    expect(seen.map(({ sentPlain }) => sentPlain).join('')).toBe('')
  })

  test.each<[string, TlsOptions, detail: string]>([
    [
      'supports TLS 1.1',
      { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' },
      'no common TLS version',
    ],
    ['speaks HTTP/2', { ALPNProtocols: ['h2'] }, 'the endpoint does not offer HTTP/1.1'],
  ])('gets nothing if it only %s', async (_, options, detail) => {
    const { result, seen } = await postOverTls({ ...good, ...options })
    expect(result).toMatchObject({ kind: 'unreachable', cause: 'tls', detail: expect.stringContaining(detail) })
    expect(seen).toEqual([])
  })

  test('is unreachable if it requires a client certificate', async () => {
    const { result } = await postOverTls({ ...good, requestCert: true, rejectUnauthorized: true, ca: authority.cert })
    expect(result).toMatchObject({ kind: 'unreachable', cause: expect.stringMatching(/^(?:tls|connection_)/u) })
  })

  test.each<[string, Handler, string]>([
    [
      'answers in plain HTTP',
      (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'),
      'the endpoint does not speak TLS',
    ],
    ['closes the connection', (socket) => socket.end(), 'the TLS handshake failed'],
    ['resets the connection', (socket) => socket.resetAndDestroy(), 'the TLS handshake failed'],
    ['sends an alert', (socket) => socket.end(Buffer.from([0x15, 3, 3, 0, 2, 2, 40])), 'no common TLS version'],
  ])('gets nothing if it %s in the handshake', async (_, handler, detail) => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', (bytes) => handler(socket, bytes))
    })
    const send = createSendRequest({ allowedSubnets: loopback })
    const result = await send(request(`https://127.0.0.1:${await listen(server)}/`))
    server.close()
    expect(result).toMatchObject({ kind: 'unreachable', cause: 'tls', detail: expect.stringContaining(detail) })
  })
})

describe('a hostile TLS endpoint', () => {
  test('counts as answered if it closes the connection in the body without close_notify', async () =>
    expect(
      await resultOf((socket) => socket.write(`HTTP/1.1 200 OK\r\n\r\nhello`, () => socket.destroy()), {
        tls: good,
        client: { ca: authority.cert },
      }),
    ).toMatchObject({ kind: 'answered', status: 200 }))
})
