import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { waitUntil } from '@workflow-service/testkit'
import { createResolver } from '../../src/outbound/resolver.ts'
import type { NameResolver, Resolution } from '../../src/outbound/resolver.ts'
import { address, alias, nameServer, zoneOf } from './name-server.ts'
import type { NameServer, Zone } from './name-server.ts'

/** How the names below behave. */
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
    case 'circle.example.com':
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
let resolver: NameResolver

/** For names that come to an end by themselves; a test of patience makes its own. */
const patientMs = 20_000

beforeEach(async () => {
  server = await nameServer(zone)
  resolver = createResolver({ servers: [server.address], timeoutMs: patientMs, tries: 2 })
})

afterEach(async () => {
  resolver.close()
  await server.close()
})

describe('the resolver', () => {
  test('gives every A and AAAA record, after one question for each', async () => {
    expect(sorted(await resolver.resolve('all.example.com'))).toEqual(
      ['192.0.2.1', '192.0.2.2', '10.0.0.1', '2001:db8::1', '::1'].toSorted(),
    )
    expect(server.questions.map(({ name, type }) => `${type} ${name}`).toSorted()).toEqual([
      'A all.example.com',
      'AAAA all.example.com',
    ])
  })

  test('gives the addresses of one family when there are none of the other', async () => {
    expect(await resolver.resolve('four.example.com')).toEqual({ ok: true, addresses: ['192.0.2.1'] })
    expect(await resolver.resolve('six.example.com')).toEqual({ ok: true, addresses: ['2001:db8::1'] })
  })

  test('follows a chain of aliases to its addresses', async () => {
    expect(await resolver.resolve('alias.example.com')).toEqual({ ok: true, addresses: ['10.0.0.1'] })
  })

  test('finds no address behind an alias that leads in a circle', async () => {
    expect(await resolver.resolve('circle.example.com')).toMatchObject({ ok: false, cause: 'name_not_found' })
  })

  test('gives the addresses of every record of the answer, whatever name it is for, so that all are judged', async () => {
    expect(sorted(await resolver.resolve('stowaway.example.com'))).toEqual(['10.0.0.1', '192.0.2.1'])
  })

  test('says that a name does not exist, or has no address', async () => {
    expect(await resolver.resolve('nowhere.example.com')).toEqual({
      ok: false,
      cause: 'name_not_found',
      detail: 'the name nowhere.example.com does not exist',
    })
    expect(await resolver.resolve('mail.example.com')).toEqual({
      ok: false,
      cause: 'name_not_found',
      detail: 'the name mail.example.com has no address',
    })
  })

  test.each([
    ['SERVFAIL', 'its name server reports a failure'],
    ['REFUSED', 'its name server refuses to answer'],
    ['FORMERR', 'its name server does not understand the question'],
    ['NOTIMP', 'ENOTIMP'],
  ] as const)('fails closed when the name server says %s', async (code, reason) => {
    const failing = await nameServer(() => ({ code }))
    const asking = createResolver({ servers: [failing.address], timeoutMs: patientMs, tries: 1 })
    const resolution = await asking.resolve('hooks.example.com')
    await failing.close()
    const detail = `the name hooks.example.com could not be looked up (${reason})`
    expect(resolution).toEqual({ ok: false, cause: 'dns_failed', detail })
  })

  test('fails closed when the name server is silent, after its own time-outs', async () => {
    const hasty = createResolver({ servers: [server.address], timeoutMs: 50, tries: 2 })
    expect(await hasty.resolve('silent.example.com')).toEqual({
      ok: false,
      cause: 'dns_failed',
      detail: 'the name silent.example.com could not be looked up (its name server did not answer in time)',
    })
    await waitUntil(() => server.questions.length >= 4)
    expect(server.questions).toHaveLength(4)
  })

  test('fails closed when the name server sends garbage', async () => {
    const hasty = createResolver({ servers: [server.address], timeoutMs: 50, tries: 2 })
    expect(await hasty.resolve('garbage.example.com')).toMatchObject({ ok: false, cause: 'dns_failed' })
  })

  test('fails closed when there is no name server at its address', async () => {
    await server.close()
    const hasty = createResolver({ servers: [server.address], timeoutMs: 50, tries: 1 })
    expect(await hasty.resolve('hooks.example.com')).toMatchObject({ ok: false, cause: 'dns_failed' })
    server = await nameServer(zone)
  })

  test('asks again over TCP when the answer was cut, and gives all of it', async () => {
    expect(sorted(await resolver.resolve('many.example.com'))).toEqual(many.toSorted())
    expect(server.questions.some(({ over }) => over === 'tcp')).toBe(true)
  })

  test('is content with one family when the other one fails', async () => {
    expect(await resolver.resolve('four-or-failure.example.com')).toEqual({ ok: true, addresses: ['192.0.2.1'] })
  })

  test('leaves it open when one family fails and the other has no address', async () => {
    expect(await resolver.resolve('nothing-or-failure.example.com')).toMatchObject({ ok: false, cause: 'dns_failed' })
  })

  test('does not wait long for a family that hangs once the other has answered', async () => {
    // Left to itself, the silent question would go on beyond the limit of this test.
    expect(await resolver.resolve('four-or-silence.example.com')).toEqual({ ok: true, addresses: ['192.0.2.1'] })
  })

  test('waits for the slower family, so that its records are judged as well', async () => {
    expect(sorted(await resolver.resolve('six-is-slow.example.com'))).toEqual(['192.0.2.1', '::1'])
  })

  test('waits on for the other family when the first has no address', async () => {
    const resolution = await resolver.resolve('six-after-no-four.example.com')
    expect(resolution).toEqual({ ok: true, addresses: ['2001:db8::1'] })
  })

  test('gives IPv4 addresses first, whichever family answers first', async () => {
    const resolution = await resolver.resolve('four-is-slow.example.com')
    expect(resolution).toEqual({ ok: true, addresses: ['192.0.2.1', '2001:db8::1'] })
  })

  test('remembers nothing: a name that turns is seen to turn', async () => {
    expect(await resolver.resolve('turning.example.com')).toEqual({ ok: true, addresses: ['192.0.2.1'] })
    expect(await resolver.resolve('turning.example.com')).toEqual({ ok: true, addresses: ['127.0.0.1'] })
  })

  test('answers one name while hundreds of others hang', async () => {
    let ended = 0
    const slow: Promise<void>[] = []
    for (let round = 1; round <= 3; round++) {
      // One hundred at a time, since the socket of the name server holds only so many questions.
      for (let each = 0; each < 100; each++) {
        slow.push(resolver.resolve(`silent${round}-${each}.example.com`).then(() => void ended++))
      }
      await waitUntil(() => server.questions.length === round * 200)
    }
    expect(await resolver.resolve('four.example.com')).toMatchObject({ ok: true })
    expect(ended).toBe(0)
    resolver.close()
    await Promise.all(slow)
  })

  test('asks for the name as it is, without search domains', async () => {
    await resolver.resolve('customer')
    expect(new Set(server.questions.map(({ name }) => name))).toEqual(new Set(['customer']))
  })

  test('ends what is under way when it is closed', async () => {
    const pending = resolver.resolve('silent.example.com')
    await waitUntil(() => server.questions.length === 2)
    resolver.close()
    expect(await pending).toMatchObject({ ok: false, cause: 'dns_failed' })
  })
})

function sorted(resolution: Resolution): string[] {
  return resolution.ok ? resolution.addresses.toSorted() : [resolution.cause]
}
