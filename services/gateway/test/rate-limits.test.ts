import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createApiKey } from '@workflow-service/database'
import { createCapturedLogger, type PrivateServer, startRedis, waitUntil } from '@workflow-service/testkit'
import { createSharedLimiter } from '@workflow-service/service-kit/rate-limit'
import type { RunningService } from '@workflow-service/service-kit'
import type { GatewayConfig } from '../src/config.ts'
import type { Call } from './support/call.ts'
import { startTestGateway, type TestGateway, useTestGateway } from './support/test-gateway.ts'

const ORGANIZATION = '/v1/organization'
const POLICY = /^"([\w-]+)";q=(\d+);w=60$/
const STATE = /^"([\w-]+)";r=(\d+);t=(\d+)$/

const anotherKey = async ({ issueKey }: TestGateway): Promise<string> => (await issueKey({ scopes: ['read'] })).key
const statuses = async (count: number, ask: () => Promise<{ status: number }>): Promise<number[]> => {
  const responses = await Promise.all(Array.from({ length: count }, ask))
  return responses.map(({ status }) => status).toSorted((a, b) => a - b)
}

describe('in memory', () => {
  const gateway = useTestGateway({ RATE_LIMIT_PER_MINUTE: '5' })

  test('accepts the limit of each key at once and answers 429 rate_limited with Retry-After beyond it', async () => {
    const key = await anotherKey(gateway)
    expect(await statuses(7, () => gateway.get(ORGANIZATION, { key }))).toEqual([200, 200, 200, 200, 200, 429, 429])
    const refused = await gateway.get(ORGANIZATION, { key })
    expect(refused.body.error.code).toBe('rate_limited')
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(60)
    expect((await gateway.get(ORGANIZATION, { key: await anotherKey(gateway) })).status).toBe(200)
  })

  test('adds the limit and what is left of it to every response', async () => {
    const key = await anotherKey(gateway)
    const calls: [method: string, path: string, status: number][] = [
      ['GET', ORGANIZATION, 200],
      ['GET', '/nowhere', 404],
      ['DELETE', ORGANIZATION, 404],
      ['GET', '/v1/workflows?limit=x', 422],
      ['GET', '/v1/workflows?search=%ff', 400],
      ['GET', ORGANIZATION, 429],
    ]
    for (const [index, [method, path, status]] of calls.entries()) {
      const response = await gateway.call(method, path, { key })
      expect(response.status).toBe(status)
      expect(POLICY.exec(String(response.headers['ratelimit-policy']))?.slice(1)).toEqual(['requests', '5'])
      const [, policy, remaining, reset] = STATE.exec(String(response.headers['ratelimit'])) ?? []
      expect([policy, Number(remaining)]).toEqual(['requests', Math.max(0, 4 - index)])
      expect(Number(reset)).toBeGreaterThanOrEqual(1)
      expect(Number(reset)).toBeLessThanOrEqual(60)
    }
  })

  test('comes after 403 and before 404, the body and the fields', async () => {
    const key = await anotherKey(gateway)
    await statuses(5, () => gateway.get(ORGANIZATION, { key }))
    expect((await gateway.get('/nowhere', { key })).status).toBe(429)
    expect((await gateway.get('/v1/workflows?limit=x', { key })).status).toBe(429)
    expect((await gateway.call('POST', '/v1/workflows/x/start', { key, body: '{' })).status).toBe(403)
  })

  test('does not count the public pages', async () => {
    for (const path of ['/healthz', '/docs', '/v1/openapi.json']) {
      for (let count = 0; count < 10; count += 1) expect((await fetch(`${gateway.url}${path}`)).status).toBe(200)
    }
  })
})

describe('failed authentications', () => {
  const first = useTestGateway()
  /** Another gateway, which has counted nothing, on the same database. */
  const startWith = async (change: Partial<GatewayConfig>) => {
    const { url, metricsPort } = await first.startAnother(change)
    return {
      get: (how: Call = {}) => first.get(ORGANIZATION, { url, ...how }),
      countLookUps: () => first.metric('gateway_key_look_ups_total', `http://127.0.0.1:${metricsPort}`),
    }
  }
  const statusesFrom = async (trustProxy: GatewayConfig['trustProxy'], addresses: readonly string[]) => {
    const { get } = await startWith({ rateLimitPerMinute: 1, trustProxy })
    const found: number[] = []
    for (const from of addresses) found.push((await get({ key: null, headers: { 'X-Forwarded-For': from } })).status)
    return found
  }

  test('are counted by address, and refuse no key from that address that was valid before', async () => {
    const { get } = await startWith({ rateLimitPerMinute: 3 })
    expect((await get()).status).toBe(200)
    expect((await get({ key: null })).headers['ratelimit-policy']).toBe('"failed-authentications";q=3;w=60')
    expect(await statuses(4, () => get({ key: createApiKey().key }))).toEqual([401, 401, 429, 429])
    expect((await get()).status).toBe(200)
  })

  test('look up no more forged keys of an address than its limit, also when they come at once', async () => {
    const { get, countLookUps } = await startWith({ rateLimitPerMinute: 3 })
    const forged = await statuses(50, () => get({ key: createApiKey().key }))
    expect(forged.filter((status) => status !== 429)).toEqual([401, 401, 401])
    expect(await countLookUps()).toBe(3)
    // No look-up could tell this key from a forged one.
    expect((await get()).status).toBe(429)
    expect(await countLookUps()).toBe(3)
  })

  test('do not count valid keys that are looked up', async () => {
    const { get } = await startWith({ rateLimitPerMinute: 2 })
    for (let count = 0; count < 5; count += 1) {
      const { status, headers } = await get({ key: await anotherKey(first) })
      expect([status, headers['ratelimit-policy']]).toEqual([200, '"requests";q=2;w=60'])
    }
  })

  test('use X-Forwarded-For only from trusted proxies', async () => {
    expect(await statusesFrom(false, ['192.0.2.1', '192.0.2.2'])).toEqual([401, 429])
    // The caller may send any entry before the one that the proxy adds.
    const behind = ['192.0.2.1', '192.0.2.2', '203.0.113.9, 192.0.2.2']
    expect(await statusesFrom(1, behind)).toEqual([401, 401, 429])
    // The IPv6 addresses of one /64 count together.
    const networks = ['2001:db8:1:2::1', '2001:db8:1:2:ffff::2', '2001:db8:1:3::1']
    expect(await statusesFrom(1, networks)).toEqual([401, 429, 401])
  })

  test('are not limited with RATE_LIMIT_PER_MINUTE=0, and responses have no headers of a limit', async () => {
    const { status, headers } = await first.get(ORGANIZATION)
    expect([status, headers['ratelimit'], headers['ratelimit-policy']]).toEqual([200, undefined, undefined])
  })
})

describe('shared through a store', () => {
  let redis: PrivateServer
  let gateway: TestGateway

  beforeAll(async () => {
    redis = await startRedis()
    gateway = await startTestGateway({
      RATE_LIMIT_PER_MINUTE: '6',
      RATE_LIMIT_STORE_URL: redis.url,
      TRUST_PROXY: '1',
    })
  })

  afterAll(async () => {
    await gateway.stop()
    await redis.stop()
  })

  test('counts the requests of a key on all gateways together, also after a restart', async () => {
    const other = await gateway.startAnother()
    let key = ''
    const result = await whileStoreDecides([other], async () => {
      key = await anotherKey(gateway)
      return [
        await statuses(3, () => gateway.get(ORGANIZATION, { key })),
        await statuses(5, () => gateway.get(ORGANIZATION, { key, url: other.url })),
      ]
    })
    expect(result).toEqual([
      [200, 200, 200],
      [200, 200, 200, 429, 429],
    ])
    await other.stop()
    const third = await gateway.startAnother()
    const afterRestart = await whileStoreDecides([third], () => gateway.get(ORGANIZATION, { key, url: third.url }))
    expect(afterRestart.status).toBe(429)
  })

  test('counts failed authentications on all gateways together, and gives back those of valid keys', async () => {
    const other = await gateway.startAnother()
    const result = await whileStoreDecides([other], async (attempt) => {
      const headers = { 'X-Forwarded-For': `192.0.2.${attempt}` }
      const ask = (url: string, key: string) => gateway.get(ORGANIZATION, { key, headers, url })
      const valid: number[] = []
      for (let count = 0; count < 8; count += 1) valid.push((await ask(other.url, await anotherKey(gateway))).status)
      const sendForgedKeys = (url: string) => statuses(4, () => ask(url, createApiKey().key))
      return [valid, await sendForgedKeys(gateway.url), await sendForgedKeys(other.url)]
    })
    expect(result).toEqual([Array.from({ length: 8 }, () => 200), [401, 401, 401, 401], [401, 401, 429, 429]])
    await other.stop()
  })

  test('gives a count back where it was taken', async () => {
    const connected = Promise.withResolvers<void>()
    let localDecisions = 0
    const limiter = createSharedLimiter({
      url: redis.url,
      quota: { limit: 2, windowSeconds: 60 },
      logger: createCapturedLogger({ service: 'gateway' }).logger,
      onStoreState: () => connected.resolve(),
      onLocalDecision: () => {
        localDecisions += 1
      },
    })
    const countedHere = await limiter.consume('caller')
    expect(localDecisions).toBe(1)
    await connected.promise
    const isAllowed = await untilStoreDecides(
      () => localDecisions,
      async (attempt) => {
        const name = `caller ${attempt}`
        limiter.giveBack(name, countedHere)
        const states = [await limiter.consume(name), await limiter.consume(name), await limiter.consume(name)]
        return states.map((state) => state.isAllowed)
      },
    ).finally(() => limiter.close())
    expect(isAllowed).toEqual([true, true, false])
  })

  test('stores every count with an expiry', async () => {
    await whileStoreDecides([], async () => await gateway.get(ORGANIZATION, { key: await anotherKey(gateway) }))
    const { Redis } = await import('ioredis')
    const client = new Redis(redis.url)
    const names = await client.keys('rate:*')
    expect(names.length).toBeGreaterThan(0)
    for (const name of names) expect(await client.pttl(name)).toBeLessThanOrEqual(60_000)
    for (const name of names) expect(await client.pttl(name)).not.toBe(-1)
    client.disconnect()
  })

  test.each([
    ['is killed', (store: PrivateServer) => store.kill()],
    ['stops answering', async (store: PrivateServer) => store.pause()],
  ])(
    'each gateway counts alone and says so in a metric while the store %s, also one that starts then',
    async (_what, breakStore) => {
      const key = await anotherKey(gateway)
      const before = await gateway.metric('gateway_rate_limit_local_decisions_total')
      await breakStore(redis)
      const answered = await statuses(8, () => gateway.get(ORGANIZATION, { key }))
      expect(answered).toEqual([200, 200, 200, 200, 200, 200, 429, 429])
      expect(await gateway.metric('gateway_rate_limit_store_up')).toBe(0)
      expect(await gateway.metric('gateway_rate_limit_local_decisions_total')).toBeGreaterThan(before)
      const late = await gateway.startAnother()
      const ofLate = await statuses(7, () => gateway.get(ORGANIZATION, { key, url: late.url }))
      expect(ofLate).toEqual([200, 200, 200, 200, 200, 200, 429])
      await late.stop()
      await redis.restart()
      await waitUntil(async () => {
        await gateway.get(ORGANIZATION, { key: await anotherKey(gateway) })
        return (await gateway.metric('gateway_rate_limit_store_up')) === 1
      })
    },
  )

  /** Repeats a scenario of the first gateway and others until the store decided all of it. */
  function whileStoreDecides<Result>(
    others: readonly RunningService[],
    scenario: (attempt: number) => Promise<Result>,
  ): Promise<Result> {
    const urls = [gateway.metricsUrl, ...others.map(({ metricsPort }) => `http://127.0.0.1:${metricsPort}`)]
    const countLocalDecisions = async () => {
      const counts = await Promise.all(
        urls.map((url) => gateway.metric('gateway_rate_limit_local_decisions_total', url)),
      )
      return counts.reduce((sum, count) => sum + count, 0)
    }
    return untilStoreDecides(countLocalDecisions, scenario)
  }
})

/**
 * Repeats a scenario until it made no local decision: a gateway that is not connected to the store yet counts alone, on
 * a busy machine an answer of the store may take more than its 100 ms, and a request that is counted elsewhere is one
 * more that is allowed.
 */
async function untilStoreDecides<Result>(
  countLocalDecisions: () => number | Promise<number>,
  scenario: (attempt: number) => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; attempt < 20; attempt += 1) {
    const before = await countLocalDecisions()
    const result = await scenario(attempt)
    if ((await countLocalDecisions()) === before) return result
  }
  throw new Error('The store never decided a whole scenario')
}
