import { once } from 'node:events'
import { connect as netConnect, Socket } from 'node:net'
import type { TcpNetConnectOpts } from 'node:net'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { startCustomerEndpoint, waitUntil } from '@workflow-service/testkit'
import type { CustomerEndpoint } from '@workflow-service/testkit'
import type { OutboundResult } from '../../src/outbound/outbound-result.ts'
import { NO_SUBNETS, parseSubnets } from '../../src/outbound/parse-subnets.ts'
import { createResolver } from '../../src/outbound/resolver.ts'
import type { NameResolver } from '../../src/outbound/resolver.ts'
import { createSendRequest } from '../../src/outbound/send-request.ts'
import { address, nameServer, zoneOf } from './name-server.ts'
import type { NameServer, Zone } from './name-server.ts'
import { loopback, request } from './post-to.ts'

let endpoint: CustomerEndpoint
let server: NameServer
let resolver: NameResolver
/** The replies of the name server, set by each test. */
let zone: Zone

beforeEach(async () => {
  endpoint = await startCustomerEndpoint({ answer: { status: 200, body: 'ok' } })
  zone = zoneOf({})
  server = await nameServer((question, before) => zone(question, before))
  resolver = createResolver({ servers: [server.address], timeoutMs: 20_000, tries: 1 })
})

afterEach(async () => {
  resolver.close()
  await server.close()
  await endpoint.close()
})

const ok: object = { kind: 'answered', status: 200, text: 'ok' }
/** Only the service's own log may know what a name resolves to. */
const refusedName = (name: string, at: string): object => ({
  kind: 'refused',
  detail: `the address of ${name} is not publicly reachable`,
  internalDetail: expect.stringContaining(at),
})

/** Posts to `host` at the endpoint's port, by default with loopback allowed. */
function post(
  host: string,
  { deadlineMs = 20_000, ...options }: Parameters<typeof createSendRequest>[0] & { deadlineMs?: number } = {},
): Promise<OutboundResult> {
  const send = createSendRequest({ allowedSubnets: loopback, resolver, ...options })
  return send(request(`http://${host}:${endpoint.port}/hook`, { deadlineMs }))
}

/** A `connect` that is refused at once, and records the addresses. */
function recordConnects(): { connect: (options: TcpNetConnectOpts) => Socket; targets: string[] } {
  const targets: string[] = []
  return {
    targets,
    connect(options) {
      targets.push(options.host ?? '')
      return new Socket().destroy(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }))
    },
  }
}

/** A `connect` that never gets an answer, except from `accepting`, where the endpoint of the test listens. */
function hang(accepting?: string): { connect: (options: TcpNetConnectOpts) => Socket; opened: Map<string, Socket> } {
  const opened = new Map<string, Socket>()
  const connect = (options: TcpNetConnectOpts): Socket => {
    const socket = options.host === accepting ? netConnect({ ...options, host: '127.0.0.1' }) : new Socket()
    opened.set(options.host ?? '', socket)
    return socket
  }
  return { connect, opened }
}

describe('an address in the URL', () => {
  test('or a name of a private network is checked without DNS, and nothing is sent to it', async () => {
    const { connect, targets } = recordConnects()
    const addresses = ['127.0.0.1', '[::1]', '10.0.0.1', '169.254.169.254', '[::ffff:127.0.0.1]', '2130706433']
    for (const host of [...addresses, 'localhost', 'customer', 'customer.local', 'metadata.google.internal']) {
      const result = await post(host, { allowedSubnets: NO_SUBNETS, connect })
      expect([host, result]).toMatchObject([host, { kind: 'refused' }])
    }
    expect([targets, server.questions, endpoint.connections]).toEqual([[], [], 0])
  })

  test('is connected to only if its subnet is allowed', async () => {
    expect(await post('127.0.0.1', { allowedSubnets: parseSubnets('127.0.0.1') })).toMatchObject(ok)
    expect(await post('127.0.0.1', { allowedSubnets: parseSubnets('127.0.0.2') })).toMatchObject({ kind: 'refused' })
    expect(endpoint.requests).toHaveLength(1)
  })

  test('is checked for each request, although it was checked when it was stored', async () => {
    const long = `https://example.com/${'x'.repeat(2000)}`
    for (const url of ['', 'ftp://example.com/', long, 'https://ada:secret@example.com/'])
      expect(await createSendRequest({ resolver })(request(url))).toMatchObject({ kind: 'refused' })
    expect(server.questions).toEqual([])
  })
})

describe('a name', () => {
  test('is looked up once for each request, and only checked addresses are connected to', async () => {
    zone = zoneOf({ 'hooks.example.com': ['93.184.215.14', '2606:4700::1'] })
    const { connect, targets } = recordConnects()
    const result = await post('hooks.example.com', { connect, allowedSubnets: NO_SUBNETS })
    expect(result).toMatchObject({ kind: 'unreachable', cause: 'connection_refused' })
    expect(targets.toSorted()).toEqual(['2606:4700::1', '93.184.215.14'])
    expect(server.questions).toHaveLength(2)
  })

  test.each([
    ['loopback', ['127.0.0.1'], '127.0.0.1'],
    ['loopback, mapped to IPv6', ['::ffff:127.0.0.1'], '::ffff:127.0.0.1'],
    ['a public and a private address', ['93.184.215.14', '10.0.0.1'], '10.0.0.1'],
    ['a private and a public address', ['10.0.0.1', '93.184.215.14'], '10.0.0.1'],
    ['a public IPv4 and a private IPv6 address', ['93.184.215.14', 'fd00::1'], 'fd00::1'],
    ['a private IPv4 and a public IPv6 address', ['2606:4700::1', '10.0.0.1'], '10.0.0.1'],
  ])('is refused if it resolves to %s, even if other records are public', async (_, addresses, bad) => {
    zone = zoneOf({ 'hooks.example.com': addresses })
    const { connect, targets } = recordConnects()
    const result = await post('hooks.example.com', { connect, allowedSubnets: NO_SUBNETS })
    expect(result).toMatchObject(refusedName('hooks.example.com', `${bad} is not a public address`))
    expect(targets).toEqual([])
  })

  test('is tried at no more than eight of its addresses', async () => {
    const many = Array.from({ length: 25 }, (_, index) => `93.184.215.${index}`)
    zone = zoneOf({ 'hooks.example.com': many })
    const { connect, targets } = recordConnects()
    await post('hooks.example.com', { connect, allowedSubnets: NO_SUBNETS })
    expect(targets).toHaveLength(8)
  })

  test('is tried at its next address if one refuses the connection, and gets one request, with the name as its Host', async () => {
    zone = zoneOf({ 'hooks.example.com': ['127.0.0.2', '127.0.0.1', '127.0.0.3'] })
    expect(await post('HOOKS.example.com')).toMatchObject(ok)
    expect(endpoint.connections).toBe(1)
    expect(endpoint.requests.map(({ headers }) => headers.host)).toEqual([`hooks.example.com:${endpoint.port}`])
  })
})

describe('a name whose first address is slow to accept the connection', () => {
  /** A server in a thread of its own, whose queue of connections is full until the thread goes on after 700 ms. */
  const SLOW_SERVER = `
    const { parentPort } = require('node:worker_threads')
    const server = require('node:http').createServer((_request, response) => response.end('ok'))
    server.listen({ host: '127.0.0.2', port: 0, backlog: 1 }, () => {
      parentPort.postMessage(server.address().port)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 700)
    })`

  test('is still connected to there when its other address refuses', async () => {
    zone = zoneOf({ 'hooks.example.com': ['127.0.0.2', '127.0.0.3'] })
    const slow = new Worker(SLOW_SERVER, { eval: true })
    const [port] = (await once(slow, 'message')) as [number]
    const queued = [0, 1].map(() => netConnect({ host: '127.0.0.2', port }))
    await Promise.all(queued.map((socket) => once(socket, 'connect')))
    const send = createSendRequest({ allowedSubnets: loopback, resolver })
    const result = await send(request(`http://hooks.example.com:${port}/hook`))
    for (const socket of queued) socket.destroy()
    await slow.terminate()
    expect(result).toMatchObject(ok)
  })
})

describe('attempts at several addresses', () => {
  const addresses = ['127.0.0.2', '127.0.0.3', '127.0.0.1', '127.0.0.4']
  beforeEach(() => {
    zone = zoneOf({ 'hooks.example.com': addresses })
  })

  test('end with the first connection: the others are closed, and no further address is tried', async () => {
    const { connect, opened } = hang('127.0.0.1')
    let closed: boolean[] = []
    endpoint.answerWith(() => {
      closed = [...opened.values()].map(({ destroyed }) => destroyed)
      return { status: 204 }
    })
    expect(await post('hooks.example.com', { connect })).toMatchObject({ kind: 'answered', status: 204 })
    expect([...opened.keys()]).toEqual(addresses.slice(0, 3))
    expect(closed).toEqual([true, true, false])
    expect(endpoint.requests).toHaveLength(1)
  })

  test('end with the deadline of the request, and are all closed', async () => {
    const { connect, opened } = hang()
    const result = await post('hooks.example.com', { connect, deadlineMs: 700 })
    expect(result).toMatchObject({ kind: 'timed_out', phase: 'connect' })
    expect([...opened.values()].map(({ destroyed }) => destroyed)).toEqual([true, true])
  })
})

describe('a name without an address in DNS', () => {
  test.each<[string, Zone, string]>([
    ['does not exist', () => ({ code: 'NXDOMAIN' }), 'name_not_found'],
    ['gets SERVFAIL', () => ({ code: 'SERVFAIL' }), 'dns_failed'],
  ])('is unreachable if it %s, and nothing is connected to', async (_, reply, cause) => {
    zone = reply
    const { connect, targets } = recordConnects()
    const result = await post('hooks.example.com', { connect })
    expect(result).toMatchObject({ kind: 'unreachable', cause })
    expect(targets).toEqual([])
  })

  test('is not connected to when its address arrives after the deadline', async () => {
    let isLate = false
    zone = ({ name, type }) => {
      setTimeout(() => (isLate = true), 1_100)
      return { afterMs: 1_000, reply: { records: type === 'A' ? [address(name, '127.0.0.1')] : [] } }
    }
    const { connect, targets } = recordConnects()
    expect(await post('hooks.example.com', { deadlineMs: 100, connect })).toMatchObject({
      kind: 'timed_out',
      phase: 'dns',
    })
    await waitUntil(() => isLate)
    expect(targets).toEqual([])
  })

  test('does not delay other requests, even if hundreds hang', async () => {
    const good = zoneOf({ 'good.example.com': ['127.0.0.1'] })
    zone = (question, before) => (question.name.startsWith('slow') ? 'silence' : good(question, before))
    const send = createSendRequest({ allowedSubnets: loopback, resolver })
    let ended = 0
    const slow: Promise<void>[] = []
    for (let round = 1; round <= 3; round++) {
      for (let each = 0; each < 100; each++) {
        slow.push(send(request(`http://slow${round}-${each}.example.com/`)).then(() => void ended++))
      }
      await waitUntil(() => server.questions.length === round * 200)
    }
    expect(await post('good.example.com')).toMatchObject(ok)
    expect(ended).toBe(0)
    resolver.close()
    await Promise.all(slow)
  })
})

describe('a connection', () => {
  test('that this machine cannot open is no outcome of the endpoint', async () => {
    const error = Object.assign(new Error('connect EMFILE'), { code: 'EMFILE', syscall: 'connect' })
    const connect = (): Socket => new Socket().destroy(error)
    const detail = 'the service cannot open a connection at the moment (EMFILE)'
    expect(await post('127.0.0.1', { connect })).toMatchObject({ kind: 'unavailable', detail })
  })

  test('to an address that was not checked is closed before a byte is written', async () => {
    zone = zoneOf({ 'hooks.example.com': ['93.184.215.14'] })
    const connect = () => netConnect({ host: '127.0.0.1', port: endpoint.port })
    const result = await post('hooks.example.com', { connect, allowedSubnets: NO_SUBNETS })
    expect(result).toMatchObject({ kind: 'unreachable', cause: 'other' })
    expect(result).toHaveProperty('detail', 'the connection went to an address that was not checked')
    await waitUntil(() => endpoint.connections === 1)
    expect(endpoint.requests).toEqual([])
  })
})

describe('with allowed subnets', () => {
  test('localhost is the allowed loopback address, without a DNS query', async () => {
    zone = zoneOf({ localhost: ['93.184.215.14'], 'app.localhost': ['93.184.215.14'] })
    expect(await post('localhost')).toMatchObject(ok)
    expect(await post('app.localhost')).toMatchObject(ok)
    expect(server.questions).toEqual([])
    const { connect, targets } = recordConnects()
    await post('localhost', { connect, allowedSubnets: parseSubnets('::1') })
    expect(targets).toEqual(['::1'])
    expect(await post('localhost', { allowedSubnets: parseSubnets('10.0.0.0/8') })).toMatchObject(
      refusedName('localhost', 'loopback'),
    )
  })

  test('names of a private network are looked up, and every record must be allowed or public', async () => {
    zone = zoneOf({
      customer: ['127.0.0.1'],
      'customer.local': ['127.0.0.1'],
      'other.local': ['10.0.0.1'],
      'both.local': ['127.0.0.1', '10.0.0.1'],
      'public.internal': ['93.184.215.14'],
    })
    expect(await post('customer')).toMatchObject(ok)
    expect(await post('customer.local')).toMatchObject(ok)
    expect(await post('other.local')).toMatchObject(refusedName('other.local', '10.0.0.1'))
    expect(await post('both.local')).toMatchObject(refusedName('both.local', '10.0.0.1'))
    const { connect, targets } = recordConnects()
    await post('public.internal', { connect })
    expect(targets).toEqual(['93.184.215.14'])
  })
})
