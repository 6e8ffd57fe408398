import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { waitUntil } from '@workflow-service/testkit'
import { createResolver } from '../../src/outbound/resolver.ts'
import type { NameResolver } from '../../src/outbound/resolver.ts'
import { address, alias, nameServer } from './name-server.ts'
import type { NameServer, Reply, Zone } from './name-server.ts'

const NAME = 'hooks.example.com'
const many = Array.from({ length: 200 }, (_, index) => `192.0.2.${index}`)
const { signal } = new AbortController()

const records = (...addresses: string[]): Reply => ({ records: addresses.map((each) => address(NAME, each)) })
const after = (afterMs: number, reply: Reply): Reply => ({ afterMs, reply })
/** A zone with these replies for IPv4 and IPv6. */
const families =
  (four: Reply, six: Reply = records()): Zone =>
  ({ type }) =>
    type === 'A' ? four : six
const FOUR = families(records('192.0.2.1'))
const found = (...addresses: string[]): object => addresses
const failed = (cause: string): object => ({ kind: 'unreachable', cause })

/** The replies of the name server, set by each test. */
let zone: Zone
let server: NameServer
let resolver: NameResolver

beforeEach(async () => {
  zone = FOUR
  server = await nameServer((question, before) => zone(question, before))
  // Long enough that only tests of the time-out, which use their own, reach it.
  resolver = createResolver({ servers: [server.address], timeoutMs: 20_000, tries: 2 })
})

afterEach(async () => {
  resolver.close()
  await server.close()
})

/** Resolves the name with a resolver of its own for the same name server. */
async function resolveWith(options: Parameters<typeof createResolver>[0], by = signal): Promise<unknown> {
  const own = createResolver({ servers: [server.address], ...options })
  return await own.resolve(NAME, by).finally(() => own.close())
}

describe('the resolver', () => {
  test('returns every A and AAAA record, after one query for each', async () => {
    zone = families(records('192.0.2.1', '192.0.2.2', '10.0.0.1'), records('2001:db8::1', '::1'))
    const resolution = await resolver.resolve(NAME, signal)
    expect(resolution).toEqual(found('192.0.2.1', '192.0.2.2', '10.0.0.1', '2001:db8::1', '::1'))
    expect(server.questions.map(({ name, type }) => `${type} ${name}`).toSorted()).toEqual([
      `A ${NAME}`,
      `AAAA ${NAME}`,
    ])
  })

  const chain = [alias(NAME, 'b.example.net'), alias('b.example.net', 'c.internal')]
  const stowaway = { records: [address(NAME, '192.0.2.1'), address('other.example.com', '10.0.0.1')] }
  const failure: Reply = { code: 'SERVFAIL' }
  test.each<[what: string, zone: Zone, expected: object]>([
    ['returns IPv4 addresses if there are no others', FOUR, found('192.0.2.1')],
    [
      'returns IPv6 addresses if there are no others',
      families(records(), records('2001:db8::1')),
      found('2001:db8::1'),
    ],
    [
      'follows a chain of aliases to its addresses',
      families({ records: [...chain, address('c.internal', '10.0.0.1')] }, { records: chain }),
      found('10.0.0.1'),
    ],
    ['returns records of other names too, so that all are checked', families(stowaway), found('192.0.2.1', '10.0.0.1')],
    [
      'repeats the query over TCP if the answer was truncated, and returns all addresses',
      ({ type, over }) => (type !== 'A' ? records() : over === 'udp' ? 'truncated' : records(...many)),
      found(...many),
    ],
    [
      'returns the addresses of one family if the other fails',
      families(records('192.0.2.1'), failure),
      found('192.0.2.1'),
    ],
    ['reports a failure if the other family has no address', families(records(), failure), failed('dns_failed')],
    // The silent query alone would take longer than this test may.
    ['waits only briefly for a family that hangs', families(records('192.0.2.1'), 'silence'), found('192.0.2.1')],
    [
      'waits for the slower family, so that its records are checked as well',
      families(records('192.0.2.1'), after(100, records('::1'))),
      found('192.0.2.1', '::1'),
    ],
    [
      'keeps waiting for the other family if the first has no address',
      families(records(), after(1_200, records('2001:db8::1'))),
      found('2001:db8::1'),
    ],
    [
      'returns IPv4 addresses first, even if IPv6 answers first',
      families(after(50, records('192.0.2.1')), records('2001:db8::1')),
      found('192.0.2.1', '2001:db8::1'),
    ],
  ])('%s', async (_what, replies, expected) => {
    zone = replies
    expect(await resolver.resolve(NAME, signal)).toMatchObject(expected)
  })

  test.each<[what: string, reply: Reply, cause: string, detail: string]>([
    ['NXDOMAIN', { code: 'NXDOMAIN' }, 'name_not_found', 'does not exist'],
    ['no record', records(), 'name_not_found', 'has no address'],
    ['SERVFAIL', failure, 'dns_failed', 'could not be looked up (its name server reports a failure)'],
    ['NOTIMP', { code: 'NOTIMP' }, 'dns_failed', 'could not be looked up (ENOTIMP)'],
  ])('says why there is no address if the name server answers %s', async (_what, reply, cause, detail) => {
    zone = () => reply
    expect(await resolveWith({ timeoutMs: 20_000, tries: 1 })).toEqual({
      ...failed(cause),
      detail: `the name ${NAME} ${detail}`,
    })
  })

  test('returns no address after its time-outs if the name server is silent', async () => {
    zone = () => 'silence'
    expect(await resolveWith({ timeoutMs: 100, retryAfterMs: 50, tries: 2 })).toEqual({
      ...failed('dns_failed'),
      detail: `the name ${NAME} could not be looked up (its name server did not answer in time)`,
    })
    await waitUntil(() => server.questions.length >= 4)
    expect(server.questions).toHaveLength(4)
  })

  test('returns no address if the name server sends an invalid answer', async () => {
    zone = () => 'garbage'
    expect(await resolveWith({ timeoutMs: 100, retryAfterMs: 50, tries: 2 })).toMatchObject(failed('dns_failed'))
  })

  test('hears an answer that arrives after the query was repeated', async () => {
    // Long after the last query, so that a delay of this process does not bring the answer before it.
    zone = families(after(1_500, records('192.0.2.1')), after(1_500, records()))
    expect(await resolveWith({ retryAfterMs: 50 })).toEqual(found('192.0.2.1'))
    expect(server.questions).toHaveLength(6)
  })

  test('asks the next name server while one is silent, and asks that one first from then on', async () => {
    const silent = await nameServer(() => 'silence')
    const failing = await nameServer(() => failure)
    const servers = [silent.address, failing.address, server.address]
    // Longer than this process may take to read an answer: the silent server would be asked again.
    const impatient = createResolver({ servers, retryAfterMs: 1_000 })
    for (let query = 0; query < 2; query += 1) {
      expect(await impatient.resolve(NAME, signal)).toEqual(found('192.0.2.1'))
      expect(silent.questions).toHaveLength(2)
    }
    impatient.close()
    await Promise.all([silent.close(), failing.close()])
  })

  test('repeats a query no more often than it may, and ends when the caller does', async () => {
    zone = () => 'silence'
    const ending = new AbortController()
    const resolution = resolveWith({ retryAfterMs: 1, tries: 3 }, ending.signal)
    await waitUntil(() => server.questions.length === 6)
    ending.abort()
    expect(await resolution).toMatchObject(failed('dns_failed'))
    expect(server.questions).toHaveLength(6)
  })

  test('is unavailable, which is no outcome, if the name servers of the service are not running', async () => {
    await server.close()
    expect(await resolveWith({ timeoutMs: 20_000, tries: 1 })).toMatchObject({ kind: 'unavailable' })
    server = await nameServer(zone)
  })

  test('caches nothing', async () => {
    zone = (question, before) => families(records(before === 0 ? '192.0.2.1' : '127.0.0.1'))(question, before)
    expect(await resolver.resolve(NAME, signal)).toEqual(found('192.0.2.1'))
    expect(await resolver.resolve(NAME, signal)).toEqual(found('127.0.0.1'))
  })

  test('queries the name without search domains', async () => {
    zone = () => ({ code: 'NXDOMAIN' })
    await resolver.resolve('customer', signal)
    expect(new Set(server.questions.map(({ name }) => name))).toEqual(new Set(['customer']))
  })

  test('cancels running queries when it is closed', async () => {
    zone = () => 'silence'
    const pending = resolver.resolve(NAME, signal)
    await waitUntil(() => server.questions.length === 2)
    resolver.close()
    expect(await pending).toMatchObject(failed('dns_failed'))
  })
})
