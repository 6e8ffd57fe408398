import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { waitUntil } from '@workflow-service/testkit'
import { createResolver } from '../../src/outbound/resolver.ts'
import type { NameResolver, Resolution } from '../../src/outbound/resolver.ts'
import { address, alias, nameServer, zoneOf } from './name-server.ts'
import type { NameServer, Zone } from './name-server.ts'

/** The replies for the names below. */
const zone: Zone = (question, before) => {
  const { name, type, over } = question
  const isFour = type === 'A'
  switch (name) {
    case 'all.example.com':
      return zoneOf({ [name]: ['192.0.2.1', '192.0.2.2', '10.0.0.1', '2001:db8::1', '::1'] })(question, before)
    case 'four.example.com':
      return { records: isFour ? [address(name, '192.0.2.1')] : [] }
    case 'six.example.com':
      return { records: isFour ? [] : [address(name, '2001:db8::1')] }
    case 'mail.example.com':
      return { records: [] }
    case 'alias.example.com': {
      const chain = [alias(name, 'b.example.net'), alias('b.example.net', 'c.internal')]
      return { records: isFour ? [...chain, address('c.internal', '10.0.0.1')] : chain }
    }
    case 'circular.example.com':
      return { records: [alias(name, 'b.example.com'), alias('b.example.com', name)] }
    case 'stowaway.example.com':
      return { records: isFour ? [address(name, '192.0.2.1'), address('other.example.com', '10.0.0.1')] : [] }
    case 'many.example.com':
      if (!isFour) return { records: [] }
      return over === 'udp' ? 'truncated' : { records: many.map((each) => address(name, each)) }
    case 'four-or-failure.example.com':
      return isFour ? { records: [address(name, '192.0.2.1')] } : { code: 'SERVFAIL' }
    case 'nothing-or-failure.example.com':
      return isFour ? { records: [] } : { code: 'SERVFAIL' }
    case 'four-or-silence.example.com':
      return isFour ? { records: [address(name, '192.0.2.1')] } : 'silence'
    case 'six-is-slow.example.com':
      if (isFour) return { records: [address(name, '192.0.2.1')] }
      return { afterMs: 100, reply: { records: [address(name, '::1')] } }
    case 'four-is-slow.example.com':
      if (!isFour) return { records: [address(name, '2001:db8::1')] }
      return { afterMs: 50, reply: { records: [address(name, '192.0.2.1')] } }
    case 'six-after-no-four.example.com':
      return isFour ? { records: [] } : { afterMs: 1200, reply: { records: [address(name, '2001:db8::1')] } }
    case 'turning.example.com':
      return { records: isFour ? [address(name, before === 0 ? '192.0.2.1' : '127.0.0.1')] : [] }
    case 'garbage.example.com':
      return 'garbage'
    default:
      return name.startsWith('silent') ? 'silence' : { code: 'NXDOMAIN' }
  }
}

const many = Array.from({ length: 200 }, (_, index) => `192.0.2.${index}`)

let server: NameServer
const { signal } = new AbortController()
let resolver: NameResolver

/** Long enough that only tests of the time-out, which use their own, reach it. */
const longTimeoutMs = 20_000

beforeEach(async () => {
  server = await nameServer(zone)
  resolver = createResolver({ servers: [server.address], timeoutMs: longTimeoutMs, tries: 2 })
})

afterEach(async () => {
  resolver.close()
  await server.close()
})

describe('the resolver', () => {
  test('returns every A and AAAA record, after one query for each', async () => {
    expect(sorted(await resolver.resolve('all.example.com', signal))).toEqual(
      ['192.0.2.1', '192.0.2.2', '10.0.0.1', '2001:db8::1', '::1'].toSorted(),
    )
    expect(server.questions.map(({ name, type }) => `${type} ${name}`).toSorted()).toEqual([
      'A all.example.com',
      'AAAA all.example.com',
    ])
  })

  test('returns the addresses of one family if the other has none', async () => {
    expect(await resolver.resolve('four.example.com', signal)).toEqual({ ok: true, addresses: ['192.0.2.1'] })
    expect(await resolver.resolve('six.example.com', signal)).toEqual({ ok: true, addresses: ['2001:db8::1'] })
  })

  test('follows a chain of aliases to its addresses', async () => {
    expect(await resolver.resolve('alias.example.com', signal)).toEqual({ ok: true, addresses: ['10.0.0.1'] })
  })

  test('finds no address for a circular alias', async () => {
    expect(await resolver.resolve('circular.example.com', signal)).toMatchObject({ ok: false, cause: 'name_not_found' })
  })

  test('returns the addresses of every record in the answer, also for other names, so that all are checked', async () => {
    expect(sorted(await resolver.resolve('stowaway.example.com', signal))).toEqual(['10.0.0.1', '192.0.2.1'])
  })

  test('reports that a name does not exist, or has no address', async () => {
    expect(await resolver.resolve('nowhere.example.com', signal)).toEqual({
      ok: false,
      cause: 'name_not_found',
      detail: 'the name nowhere.example.com does not exist',
    })
    expect(await resolver.resolve('mail.example.com', signal)).toEqual({
      ok: false,
      cause: 'name_not_found',
      detail: 'the name mail.example.com has no address',
    })
  })

  test.each([
    ['SERVFAIL', 'its name server reports a failure'],
    ['REFUSED', 'its name server refuses to answer'],
    ['FORMERR', 'its name server does not understand the query'],
    ['NOTIMP', 'ENOTIMP'],
  ] as const)('returns no address if the name server answers %s', async (code, reason) => {
    const failing = await nameServer(() => ({ code }))
    const asking = createResolver({ servers: [failing.address], timeoutMs: longTimeoutMs, tries: 1 })
    const resolution = await asking.resolve('hooks.example.com', signal)
    await failing.close()
    const detail = `the name hooks.example.com could not be looked up (${reason})`
    expect(resolution).toEqual({ ok: false, cause: 'dns_failed', detail })
  })

  test('returns no address after its time-outs if the name server is silent', async () => {
    const impatient = createResolver({ servers: [server.address], timeoutMs: 100, retryAfterMs: 50, tries: 2 })
    expect(await impatient.resolve('silent.example.com', signal)).toEqual({
      ok: false,
      cause: 'dns_failed',
      detail: 'the name silent.example.com could not be looked up (its name server did not answer in time)',
    })
    await waitUntil(() => server.questions.length >= 4)
    expect(server.questions).toHaveLength(4)
  })

  test('hears an answer that arrives after the query was repeated', async () => {
    const slow = await nameServer(({ name, type }) => ({
      afterMs: 400,
      reply: { records: type === 'A' ? [address(name, '192.0.2.1')] : [] },
    }))
    const impatient = createResolver({ servers: [slow.address], retryAfterMs: 50 })
    expect(await impatient.resolve('hooks.example.com', signal)).toEqual({ ok: true, addresses: ['192.0.2.1'] })
    expect(slow.questions).toHaveLength(6)
    impatient.close()
    await slow.close()
  })

  test('asks the next name server while one is silent, and asks that one first from then on', async () => {
    const silent = await nameServer(() => 'silence')
    const failing = await nameServer(() => ({ code: 'SERVFAIL' }))
    const servers = [silent.address, failing.address, server.address]
    const impatient = createResolver({ servers, retryAfterMs: 50 })
    const found = { ok: true, addresses: ['192.0.2.1'] }
    expect(await impatient.resolve('four.example.com', signal)).toEqual(found)
    expect(silent.questions).toHaveLength(2)
    expect(await impatient.resolve('four.example.com', signal)).toEqual(found)
    expect(silent.questions).toHaveLength(2)
    impatient.close()
    await Promise.all([silent.close(), failing.close()])
  })

  test('repeats a query no more often than it may, and ends when the caller does', async () => {
    const patient = createResolver({ servers: [server.address], retryAfterMs: 1, tries: 3 })
    const ending = new AbortController()
    const resolution = patient.resolve('silent.example.com', ending.signal)
    await waitUntil(() => server.questions.length === 6)
    ending.abort()
    expect(await resolution).toMatchObject({ ok: false, cause: 'dns_failed' })
    expect(server.questions).toHaveLength(6)
    patient.close()
  })

  test('returns no address if the name server sends an invalid answer', async () => {
    const impatient = createResolver({ servers: [server.address], timeoutMs: 100, retryAfterMs: 50, tries: 2 })
    expect(await impatient.resolve('garbage.example.com', signal)).toMatchObject({ ok: false, cause: 'dns_failed' })
  })

  test('is unavailable, which is no outcome, if the name servers of the service are not running', async () => {
    await server.close()
    const impatient = createResolver({ servers: [server.address], timeoutMs: 50, tries: 1 })
    expect(await impatient.resolve('hooks.example.com', signal)).toMatchObject({ ok: false, cause: 'unavailable' })
    server = await nameServer(zone)
  })

  test('repeats the query over TCP if the answer was truncated, and returns all addresses', async () => {
    expect(sorted(await resolver.resolve('many.example.com', signal))).toEqual(many.toSorted())
    expect(server.questions.some(({ over }) => over === 'tcp')).toBe(true)
  })

  test('returns the addresses of one family if the other fails', async () => {
    expect(await resolver.resolve('four-or-failure.example.com', signal)).toEqual({
      ok: true,
      addresses: ['192.0.2.1'],
    })
  })

  test('reports a DNS failure if one family fails and the other has no address', async () => {
    expect(await resolver.resolve('nothing-or-failure.example.com', signal)).toMatchObject({
      ok: false,
      cause: 'dns_failed',
    })
  })

  test('waits only briefly for a family that hangs after the other has answered', async () => {
    // The silent query alone would take longer than this test may.
    expect(await resolver.resolve('four-or-silence.example.com', signal)).toEqual({
      ok: true,
      addresses: ['192.0.2.1'],
    })
  })

  test('waits for the slower family, so that its records are checked as well', async () => {
    expect(sorted(await resolver.resolve('six-is-slow.example.com', signal))).toEqual(['192.0.2.1', '::1'])
  })

  test('keeps waiting for the other family if the first has no address', async () => {
    const resolution = await resolver.resolve('six-after-no-four.example.com', signal)
    expect(resolution).toEqual({ ok: true, addresses: ['2001:db8::1'] })
  })

  test('returns IPv4 addresses first, even if IPv6 answers first', async () => {
    const resolution = await resolver.resolve('four-is-slow.example.com', signal)
    expect(resolution).toEqual({ ok: true, addresses: ['192.0.2.1', '2001:db8::1'] })
  })

  test('caches nothing', async () => {
    expect(await resolver.resolve('turning.example.com', signal)).toEqual({ ok: true, addresses: ['192.0.2.1'] })
    expect(await resolver.resolve('turning.example.com', signal)).toEqual({ ok: true, addresses: ['127.0.0.1'] })
  })

  test('answers one name while hundreds of others hang', async () => {
    let ended = 0
    const slow: Promise<void>[] = []
    for (let round = 1; round <= 3; round++) {
      // One hundred at a time, because the socket buffer of the name server is limited.
      for (let each = 0; each < 100; each++) {
        slow.push(resolver.resolve(`silent${round}-${each}.example.com`, signal).then(() => void ended++))
      }
      await waitUntil(() => server.questions.length === round * 200)
    }
    expect(await resolver.resolve('four.example.com', signal)).toMatchObject({ ok: true })
    expect(ended).toBe(0)
    resolver.close()
    await Promise.all(slow)
  })

  test('queries the name without search domains', async () => {
    await resolver.resolve('customer', signal)
    expect(new Set(server.questions.map(({ name }) => name))).toEqual(new Set(['customer']))
  })

  test('cancels running queries when it is closed', async () => {
    const pending = resolver.resolve('silent.example.com', signal)
    await waitUntil(() => server.questions.length === 2)
    resolver.close()
    expect(await pending).toMatchObject({ ok: false, cause: 'dns_failed' })
  })
})

function sorted(resolution: Resolution): string[] {
  return resolution.ok ? resolution.addresses.toSorted() : [resolution.cause]
}
