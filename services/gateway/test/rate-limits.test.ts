import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createApiKey, issueApiKey, newId } from '@workflow-service/database'
import { type PrivateServer, startRedis, waitUntil } from '@workflow-service/testkit'
import { callGateway } from './support/call.ts'
import { startTestGateway, type TestGateway } from './support/test-gateway.ts'

const ORGANIZATION = '/v1/organization'
const POLICY = /^"([\w-]+)";q=(\d+);w=60$/
const STATE = /^"([\w-]+)";r=(\d+);t=(\d+)$/

const anotherKey = async (gateway: TestGateway): Promise<string> => {
  const { key } = await issueApiKey(gateway.db, gateway.organization.id, {
    name: newId(),
    scopes: ['read'],
    expiresAt: null,
  })
  return key
}
const statuses = async (count: number, ask: () => Promise<{ status: number }>): Promise<number[]> => {
  const answers = await Promise.all(Array.from({ length: count }, ask))
  return answers.map(({ status }) => status).toSorted((a, b) => a - b)
}
const metric = async (url: string, name: string): Promise<number> => {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Number(new RegExp(`^${name}\\{[^}]*\\} ([\\d.]+)`, 'm').exec(text)?.[1] ?? Number.NaN)
}
const askFrom = (gateway: TestGateway, forwardedFor: string) =>
  gateway.get(ORGANIZATION, { key: null, headers: { 'X-Forwarded-For': forwardedFor } })

describe('in memory', () => {
  let gateway: TestGateway

  beforeAll(async () => {
    gateway = await startTestGateway({ RATE_LIMIT_PER_MINUTE: '5' })
  }, 60_000)

  afterAll(() => gateway.stop())

  test('lets a burst through and answers the rest 429 rate_limited with Retry-After', async () => {
    const key = await anotherKey(gateway)
    expect(await statuses(7, () => gateway.get(ORGANIZATION, { key }))).toEqual([200, 200, 200, 200, 200, 429, 429])
    const refused = await gateway.get(ORGANIZATION, { key })
    expect(refused.body.error.code).toBe('rate_limited')
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(60)
  })

  test('counts each key for itself', async () => {
    const [one, other] = [await anotherKey(gateway), await anotherKey(gateway)]
    await statuses(6, () => gateway.get(ORGANIZATION, { key: one }))
    expect((await gateway.get(ORGANIZATION, { key: other })).status).toBe(200)
  })

  test('says on every answer what the limit is and what is left of it', async () => {
    const key = await anotherKey(gateway)
    const asked: [method: string, path: string, status: number][] = [
      ['GET', ORGANIZATION, 200],
      ['GET', '/nowhere', 404],
      ['DELETE', ORGANIZATION, 404],
      ['GET', '/v1/workflows?limit=x', 422],
      ['GET', '/v1/workflows?search=%ff', 400],
      ['GET', ORGANIZATION, 429],
    ]
    for (const [index, [method, path, status]] of asked.entries()) {
      const answer = await gateway.call(method, path, { key })
      expect(answer.status).toBe(status)
      expect(POLICY.exec(String(answer.headers['ratelimit-policy']))?.slice(1)).toEqual(['requests', '5'])
      const [, policy, remaining, reset] = STATE.exec(String(answer.headers['ratelimit'])) ?? []
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

  test('needs no key for the pages that everybody may see', async () => {
    for (const path of ['/healthz', '/docs', '/v1/openapi.json']) {
      for (let asked = 0; asked < 10; asked += 1) expect((await fetch(`${gateway.url}${path}`)).status).toBe(200)
    }
  })
})

describe('of failed authentications', () => {
  test('is counted by address, and never stops a good key of the same address', async () => {
    const gateway = await startTestGateway({ RATE_LIMIT_PER_MINUTE: '3' })
    const bad = await gateway.get(ORGANIZATION, { key: null })
    expect(bad.headers['ratelimit-policy']).toBe('"failed-authentications";q=3;w=60')
    const ask = () => gateway.get(ORGANIZATION, { key: createApiKey().key })
    expect(await statuses(4, ask)).toEqual([401, 401, 429, 429])
    expect((await gateway.get(ORGANIZATION)).status).toBe(200)
    await gateway.stop()
  })

  test('believes X-Forwarded-For only from proxies that are trusted', async () => {
    const untrusting = await startTestGateway({ RATE_LIMIT_PER_MINUTE: '1' })
    expect((await askFrom(untrusting, '192.0.2.1')).status).toBe(401)
    expect((await askFrom(untrusting, '192.0.2.2')).status).toBe(429)
    await untrusting.stop()
    const trusting = await startTestGateway({ RATE_LIMIT_PER_MINUTE: '1', TRUST_PROXY: '1' })
    expect((await askFrom(trusting, '192.0.2.1')).status).toBe(401)
    expect((await askFrom(trusting, '192.0.2.2')).status).toBe(401)
    // What stands before the proxy's own entry is the caller's invention.
    expect((await askFrom(trusting, '203.0.113.9, 192.0.2.2')).status).toBe(429)
    // One subscriber's IPv6 addresses are one.
    expect((await askFrom(trusting, '2001:db8:1:2::1')).status).toBe(401)
    expect((await askFrom(trusting, '2001:db8:1:2:ffff::2')).status).toBe(429)
    expect((await askFrom(trusting, '2001:db8:1:3::1')).status).toBe(401)
    await trusting.stop()
  })
})

test('no limit is set and no header sent with RATE_LIMIT_PER_MINUTE=0', async () => {
  const gateway = await startTestGateway({ RATE_LIMIT_PER_MINUTE: '0' })
  const { status, headers } = await gateway.get(ORGANIZATION)
  expect([status, headers['ratelimit'], headers['ratelimit-policy']]).toEqual([200, undefined, undefined])
  await gateway.stop()
})

describe('shared through a store', () => {
  let redis: PrivateServer
  let gateway: TestGateway

  beforeAll(async () => {
    redis = await startRedis()
    gateway = await startTestGateway({ RATE_LIMIT_PER_MINUTE: '6', RATE_LIMIT_STORE_URL: redis.url })
    await waitUntil(async () => {
      await gateway.get(ORGANIZATION, { key: await anotherKey(gateway) })
      return (await metric(gateway.metricsUrl, 'gateway_rate_limit_local_decisions_total')) >= 0
    })
  }, 180_000)

  afterAll(async () => {
    await gateway.stop()
    await redis.stop()
  })

  test('counts the requests of a key on all gateways together, also across a restart', async () => {
    const key = await anotherKey(gateway)
    const other = await gateway.startAnother()
    await warmUp(other.url)
    const ask = (url: string) => () => callGateway(url, 'GET', ORGANIZATION, { key })
    expect(await statuses(3, ask(gateway.url))).toEqual([200, 200, 200])
    expect(await statuses(5, ask(other.url))).toEqual([200, 200, 200, 429, 429])
    await other.stop()
    const third = await gateway.startAnother()
    await warmUp(third.url)
    expect((await ask(third.url)()).status).toBe(429)
  })

  test('leaves nothing behind in the store once a bucket is full again', async () => {
    await gateway.get(ORGANIZATION, { key: await anotherKey(gateway) })
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
    ['answers nothing any more', async (store: PrivateServer) => store.pause()],
  ])('limits by itself and says so in a metric when the store %s, and comes back to it', async (_what, harm) => {
    const key = await anotherKey(gateway)
    const before = await metric(gateway.metricsUrl, 'gateway_rate_limit_local_decisions_total')
    await harm(redis)
    const answered = await statuses(8, () => gateway.get(ORGANIZATION, { key }))
    expect(answered).toEqual([200, 200, 200, 200, 200, 200, 429, 429])
    expect(await metric(gateway.metricsUrl, 'gateway_rate_limit_store_up')).toBe(0)
    expect(await metric(gateway.metricsUrl, 'gateway_rate_limit_local_decisions_total')).toBeGreaterThan(before)
    await redis.restart()
    await waitUntil(async () => {
      await gateway.get(ORGANIZATION, { key: await anotherKey(gateway) })
      return (await metric(gateway.metricsUrl, 'gateway_rate_limit_store_up')) === 1
    })
  })

  test('starts and serves without the store', async () => {
    await redis.kill()
    const other = await gateway.startAnother()
    const key = await anotherKey(gateway)
    const ask = () => callGateway(other.url, 'GET', ORGANIZATION, { key })
    expect(await statuses(7, ask)).toEqual([200, 200, 200, 200, 200, 200, 429])
    await other.stop()
    await redis.restart()
  })

  /** Until the gateway has met the store, it decides for itself. */
  async function warmUp(url: string): Promise<void> {
    await waitUntil(async () => {
      const { Redis } = await import('ioredis')
      const client = new Redis(redis.url)
      const before = await client.dbsize()
      await callGateway(url, 'GET', ORGANIZATION, { key: await anotherKey(gateway) })
      const after = await client.dbsize()
      client.disconnect()
      return after > before
    })
  }
})
