import { connect, Socket } from 'node:net'
import type { TcpNetConnectOpts } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { customerEndpoint, freePort, waitUntil } from '@workflow-service/testkit'
import type { CustomerEndpoint } from '@workflow-service/testkit'
import { openConnection } from '../../src/outbound/open-connection.ts'
import type { OutboundResult } from '../../src/outbound/outbound-result.ts'
import { noSubnets, parseSubnets } from '../../src/outbound/parse-subnets.ts'
import { createResolver } from '../../src/outbound/resolver.ts'
import type { NameResolver } from '../../src/outbound/resolver.ts'
import { createSendRequest } from '../../src/outbound/send-request.ts'
import { address, alias, nameServer, zoneOf } from './name-server.ts'
import type { NameServer, Zone } from './name-server.ts'
import { loopback, request } from './post-to.ts'

let endpoint: CustomerEndpoint
let server: NameServer
let resolver: NameResolver
/** What the name server says; a test sets it. */
let zone: Zone

beforeEach(async () => {
  endpoint = await customerEndpoint({ answer: { status: 200, body: 'ok' } })
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
const refused = (at: string): object => ({ kind: 'refused', code: 'url_not_public', address: at })

/** Posts to `host` at the endpoint's port, with loopback allowed unless told otherwise. */
function post(
  host: string,
  { deadlineMs = 20_000, ...options }: Parameters<typeof createSendRequest>[0] & { deadlineMs?: number } = {},
): Promise<OutboundResult> {
  const send = createSendRequest({ allowedSubnets: loopback, resolver, ...options })
  return send(request(`http://${host}:${endpoint.port}/hook`, { deadlineMs }))
}

/** A dial that never connects and remembers where it should have gone. */
function recordingDial(): { dial: (options: TcpNetConnectOpts) => Socket; dialled: string[] } {
  const dialled: string[] = []
  return {
    dialled,
    dial(options) {
      if (options.lookup === undefined) dialled.push(options.host ?? '')
      options.lookup?.(options.host ?? '', { all: true }, (_, found) => {
        for (const each of [found].flat()) dialled.push(typeof each === 'string' ? each : each.address)
      })
      return new Socket()
    },
  }
}

describe('an address in the URL', () => {
  test.each(['127.0.0.1', '[::1]', '10.0.0.1', '169.254.169.254', '[::ffff:127.0.0.1]', 'localhost', '2130706433'])(
    'is judged without DNS: nothing is sent to %s',
    async (host) => {
      const { dial, dialled } = recordingDial()
      const result = await post(host, { allowedSubnets: noSubnets, dial })
      expect(result).toMatchObject({ kind: 'refused', code: 'url_not_public' })
      expect([dialled, server.questions, endpoint.connections]).toEqual([[], [], 0])
    },
  )

  test('is dialled when its subnet is allowed, and only then', async () => {
    expect(await post('127.0.0.1', { allowedSubnets: parseSubnets('127.0.0.1') })).toMatchObject(ok)
    expect(await post('127.0.0.1', { allowedSubnets: parseSubnets('127.0.0.2') })).toMatchObject(refused('127.0.0.1'))
    expect(endpoint.requests).toHaveLength(1)
  })

  test.each([
    ['', 'url_parsing'],
    ['ftp://example.com/', 'url_scheme'],
    [`https://example.com/${'x'.repeat(2000)}`, 'string_too_long'],
    ['https://ada:secret@example.com/', 'url_parsing'],
  ])('is judged afresh on each send: %j is refused although it was stored', async (url, code) => {
    expect(await createSendRequest({ resolver })(request(url))).toMatchObject({ kind: 'refused', code, address: null })
    expect(server.questions).toEqual([])
  })
})

describe('a name', () => {
  test('is looked up once for each request, and only judged addresses are dialled', async () => {
    zone = zoneOf({ 'hooks.example.com': ['93.184.215.14', '2606:4700::1'] })
    const { dial, dialled } = recordingDial()
    const result = await post('hooks.example.com', { dial, allowedSubnets: noSubnets, deadlineMs: 500 })
    expect(result).toMatchObject({ kind: 'timed_out', phase: 'connect', sent: false })
    expect(dialled.toSorted()).toEqual(['2606:4700::1', '93.184.215.14'])
    expect(server.questions).toHaveLength(2)
  })

  test.each([
    ['loopback', ['127.0.0.1'], '127.0.0.1'],
    ['a private network', ['10.0.0.1'], '10.0.0.1'],
    ['cloud metadata', ['169.254.169.254'], '169.254.169.254'],
    ['this host', ['0.0.0.0'], '0.0.0.0'],
    ['loopback in IPv6', ['::1'], '::1'],
    ['loopback, mapped', ['::ffff:127.0.0.1'], '::ffff:127.0.0.1'],
    ['a private network behind NAT64', ['64:ff9b::a00:1'], '64:ff9b::a00:1'],
    ['a public and a private address', ['93.184.215.14', '10.0.0.1'], '10.0.0.1'],
    ['a private and a public address', ['10.0.0.1', '93.184.215.14'], '10.0.0.1'],
    ['a public IPv4 and a private IPv6 address', ['93.184.215.14', 'fd00::1'], 'fd00::1'],
    ['a private IPv4 and a public IPv6 address', ['2606:4700::1', '10.0.0.1'], '10.0.0.1'],
  ])('is refused when it leads to %s: one bad record condemns it', async (_, addresses, bad) => {
    zone = zoneOf({ 'hooks.example.com': addresses })
    const { dial, dialled } = recordingDial()
    const result = await post('hooks.example.com', { dial, allowedSubnets: noSubnets })
    expect(result).toMatchObject(refused(bad))
    expect(result).toHaveProperty(
      'detail',
      expect.stringContaining(`hooks.example.com: ${bad} is not a public address`),
    )
    expect(dialled).toEqual([])
  })

  test('is refused when its last record of hundreds is bad', async () => {
    const many = Array.from({ length: 300 }, (_, index) => `93.184.${index >> 8}.${index % 256}`)
    zone = (question, before) => {
      if (question.over === 'udp' && question.type === 'A') return 'truncated'
      return zoneOf({ 'hooks.example.com': [...many, '10.0.0.1'] })(question, before)
    }
    expect(await post('hooks.example.com', { allowedSubnets: noSubnets })).toMatchObject(refused('10.0.0.1'))
  })

  test('with hundreds of good records has only the first eight dialled', async () => {
    const many = Array.from({ length: 25 }, (_, index) => `93.184.215.${index}`)
    zone = zoneOf({ 'hooks.example.com': many })
    const { dial, dialled } = recordingDial()
    await post('hooks.example.com', { dial, allowedSubnets: noSubnets, deadlineMs: 500 })
    expect(dialled).toHaveLength(8)
  })

  test('is refused by what its alias leads to', async () => {
    zone = ({ name, type }) => ({
      records: [alias(name, 'cdn.example.net'), ...(type === 'A' ? [address('cdn.example.net', '192.168.1.1')] : [])],
    })
    expect(await post('hooks.example.com', { allowedSubnets: noSubnets })).toMatchObject(refused('192.168.1.1'))
  })

  test('that turns between two requests is judged afresh', async () => {
    zone = ({ name, type }, before) => ({
      records: type === 'A' ? [address(name, before === 0 ? '127.0.0.1' : '10.0.0.1')] : [],
    })
    expect(await post('turning.example.com')).toMatchObject(ok)
    expect(await post('turning.example.com')).toMatchObject(refused('10.0.0.1'))
    expect(endpoint.requests).toHaveLength(1)
  })

  test('keeps its place in the Host header', async () => {
    zone = zoneOf({ 'hooks.example.com': ['127.0.0.1'] })
    await post('HOOKS.example.com')
    expect(endpoint.requests[0]?.headers.host).toBe(`hooks.example.com:${endpoint.port}`)
  })

  test('is tried at its next address when one refuses the connection, and gets one request', async () => {
    zone = zoneOf({ 'hooks.example.com': ['127.0.0.2', '127.0.0.1', '127.0.0.3'] })
    expect(await post('hooks.example.com')).toMatchObject(ok)
    expect([endpoint.connections, endpoint.requests.length]).toEqual([1, 1])
  })

  test('is unreachable when every address refuses the connection', async () => {
    zone = zoneOf({ 'hooks.example.com': ['127.0.0.2', '127.0.0.3'] })
    expect(await post('hooks.example.com')).toMatchObject({
      kind: 'unreachable',
      cause: 'connection_refused',
      sent: false,
    })
  })
})

describe('a name that DNS does not give', () => {
  test.each<[string, Zone, string]>([
    ['does not exist', () => ({ code: 'NXDOMAIN' }), 'name_not_found'],
    ['has no address', () => ({ records: [] }), 'name_not_found'],
    ['has an alias to nowhere', ({ name }) => ({ records: [alias(name, 'b.example.com')] }), 'name_not_found'],
    ['fails', () => ({ code: 'SERVFAIL' }), 'dns_failed'],
    ['is refused', () => ({ code: 'REFUSED' }), 'dns_failed'],
    ['is answered with garbage', () => 'garbage', 'dns_failed'],
  ])('is unreachable when it %s: no record fails closed', async (_, says, cause) => {
    zone = says
    const { dial, dialled } = recordingDial()
    const result = await post('hooks.example.com', { dial })
    expect(result).toMatchObject({ kind: 'unreachable', cause, sent: false, tlsFault: null })
    expect(dialled).toEqual([])
  })

  test('times out with the request, not later', async () => {
    zone = () => 'silence'
    const result = await post('hooks.example.com', { deadlineMs: 200 })
    expect(result).toMatchObject({ kind: 'timed_out', phase: 'dns', sent: false })
  })

  test('gets nothing sent when its address comes after the deadline', async () => {
    let isLate = false
    zone = ({ name, type }) => {
      setTimeout(() => (isLate = true), 1_100)
      return { afterMs: 1_000, reply: { records: type === 'A' ? [address(name, '127.0.0.1')] : [] } }
    }
    const { dial, dialled } = recordingDial()
    expect(await post('hooks.example.com', { deadlineMs: 100, dial })).toMatchObject({
      kind: 'timed_out',
      phase: 'dns',
    })
    await waitUntil(() => isLate)
    expect(dialled).toEqual([])
  })

  test('does not delay others, though hundreds hang', async () => {
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
  test('that leads elsewhere than to a judged address is closed before a byte is written', async () => {
    zone = zoneOf({ 'hooks.example.com': ['93.184.215.14'] })
    const dial = () => connect({ host: '127.0.0.1', port: endpoint.port })
    const result = await post('hooks.example.com', { dial, allowedSubnets: noSubnets })
    expect(result).toMatchObject({ kind: 'unreachable', cause: 'other', sent: false })
    expect(result).toHaveProperty('detail', 'the connection went to an address that was not judged')
    await waitUntil(() => endpoint.connections === 1)
    expect(endpoint.requests).toEqual([])
  })
})

describe('a connection that is begun after the deadline', () => {
  test('is not made', () => {
    const socket = new Socket()
    void openConnection(['93.184.215.14'], 80, AbortSignal.abort(), () => socket)
    expect(socket.destroyed).toBe(true)
  })
})

describe('with allowed subnets', () => {
  test('localhost is the allowed loopback address, and DNS is not asked', async () => {
    zone = zoneOf({ localhost: ['93.184.215.14'], 'app.localhost': ['93.184.215.14'] })
    expect(await post('localhost')).toMatchObject(ok)
    expect(await post('app.localhost')).toMatchObject(ok)
    expect(server.questions).toEqual([])
    const { dial, dialled } = recordingDial()
    await post('localhost', { dial, allowedSubnets: parseSubnets('::1'), deadlineMs: 500 })
    expect(dialled).toEqual(['::1'])
    expect(await post('localhost', { allowedSubnets: parseSubnets('10.0.0.0/8') })).toMatchObject(refused('127.0.0.1'))
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
    expect(await post('other.local')).toMatchObject(refused('10.0.0.1'))
    expect(await post('both.local')).toMatchObject(refused('10.0.0.1'))
    const { dial, dialled } = recordingDial()
    await post('public.internal', { dial, deadlineMs: 500 })
    expect(dialled).toEqual(['93.184.215.14'])
  })

  test('an address is the same in each of its spellings', async () => {
    const mapped = parseSubnets('::ffff:127.0.0.0/104')
    expect(await post('[::FFFF:127.0.0.1]', { allowedSubnets: mapped })).toMatchObject(ok)
    expect(await post('[0:0:0:0:0:ffff:7f00:1]', { allowedSubnets: mapped })).toMatchObject(ok)
  })

  test('a name does not pass by an IPv6 spelling of an allowed IPv4 address', async () => {
    zone = zoneOf({ 'hooks.example.com': ['::ffff:127.0.0.1'] })
    expect(await post('hooks.example.com')).toMatchObject(refused('::ffff:127.0.0.1'))
  })
})

describe('without allowed subnets', () => {
  test('names of a private network are refused without asking DNS', async () => {
    zone = zoneOf({ customer: ['93.184.215.14'], 'customer.local': ['93.184.215.14'] })
    for (const host of ['customer', 'customer.local', 'localhost', 'metadata.google.internal']) {
      const result = await post(host, { allowedSubnets: noSubnets })
      expect(result).toMatchObject({ kind: 'refused', code: 'url_not_public', address: null })
    }
    expect(server.questions).toEqual([])
  })

  test('an unused port of loopback looks no different from a used one', async () => {
    const send = createSendRequest({ resolver })
    const used = await send(request(`http://127.0.0.1:${endpoint.port}/`))
    const unused = await send(request(`http://127.0.0.1:${await freePort()}/`))
    expect({ ...used, durationMs: 0 }).toEqual({ ...unused, durationMs: 0 })
  })
})
