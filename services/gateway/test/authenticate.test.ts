import { crc32 } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { type Operation, OPERATIONS } from '@workflow-service/contract'
import { createApiKey, hashApiKey, newId, operatorOf, type Principal, revokeApiKey } from '@workflow-service/database'
import { openConnection, parseResponse, sendRaw, waitUntil } from '@workflow-service/testkit'
import { type ApiKeyCache, createApiKeyCache } from '../src/auth/api-key-cache.ts'
import { useTestGateway } from './support/test-gateway.ts'

const gateway = useTestGateway()

const ORGANIZATION = '/v1/organization'
const statusWith = async (key: string, url?: string): Promise<number> =>
  (await gateway.get(ORGANIZATION, { key, url })).status
const lookUps = () => gateway.metric('gateway_key_look_ups_total')
const lastUsed = async (id: string): Promise<Date | null> =>
  (await gateway.db.prisma.apiKey.findUniqueOrThrow({ where: { id } })).lastUsedAt
const suspend = async (isSuspended: boolean): Promise<unknown> =>
  await gateway.db.prisma.organization.update({ where: { id: gateway.organization.id }, data: { isSuspended } })

describe('401', () => {
  const { key } = createApiKey()
  const mistyped = `${key.slice(0, -1)}${key.endsWith('a') ? 'b' : 'a'}`
  const missing = 'Send your API key in the header "Authorization: Bearer wfk_…".'
  const malformed = 'The Authorization header must be sent once, as "Authorization: Bearer wfk_…".'
  const invalid = 'The API key is not valid: it is mistyped, unknown, revoked or expired.'
  test.each<[what: string, headers: Record<string, string>, message: string]>([
    ['no Authorization header', {}, missing],
    ['an empty Authorization header', { Authorization: '' }, malformed],
    ['the scheme alone', { Authorization: 'Bearer' }, malformed],
    ['another scheme', { Authorization: 'Basic d2Zr' }, malformed],
    ['two keys in one header', { Authorization: `Bearer ${key} ${key}` }, malformed],
    ['two credentials in one header', { Authorization: `Bearer ${key}, Bearer ${key}` }, malformed],
    ['text that is not a key', { Authorization: 'Bearer secret' }, invalid],
    ['a key with a wrong checksum', { Authorization: `Bearer ${mistyped}` }, invalid],
    ['an unknown key', { Authorization: `Bearer ${key}` }, invalid],
    ['a key in another header', { 'X-Api-Key': key }, missing],
    ['an enormous key', { Authorization: `Bearer ${'x'.repeat(8_000)}` }, invalid],
  ])('%s is refused with what to send', async (_what, headers, message) => {
    const response = await gateway.get(ORGANIZATION, { key: null, headers })
    expect([response.status, response.body.error]).toMatchObject([401, { code: 'unauthorized', message }])
    expect(response.text).not.toContain(key)
  })

  test('a valid key beside another one, in the header or in another Authorization header', async () => {
    const header = `Authorization: Bearer ${gateway.organization.key}`
    const statusOf = async (...headers: string[]) => {
      const lines = [`GET ${ORGANIZATION} HTTP/1.1`, 'Host: x', 'Connection: close', ...headers, '', '']
      return (await sendRaw(gateway.url, lines.join('\r\n')))?.status
    }
    expect(await statusOf(header, header)).toBe(401)
    expect(await statusOf(`${header} ${gateway.organization.key}`)).toBe(401)
    expect(await statusOf(header, 'Access-Control-Request-Headers: authorization')).toBe(200)
  })

  test('a known prefix with another secret', async () => {
    const { key: valid } = await gateway.issueKey()
    const before = await lookUps()
    expect(await statusWith(forge(valid))).toBe(401)
    expect(await lookUps()).toBe(before + 1)
    expect(await statusWith(valid)).toBe(200)
  })

  test('comes before everything else for every operation and path, also with a key in the query', async () => {
    const operations = Object.values<Operation>(OPERATIONS).map(
      ({ method, path }) => `${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, newId())}`,
    )
    const others = ['/', '/v1', '/v2/organization', '/docs/x', '/readyz', '/metrics', '/%ff', '/v1/workflows?limit=x']
    const withKey = `${ORGANIZATION}?api_key=${gateway.organization.key}`
    for (const call of [...operations, ...[...others, withKey].map((path) => `GET ${path}`)]) {
      const [method = '', path = ''] = call.split(' ')
      const { status, body } = await gateway.call(method, path, { key: null })
      expect([call, status, body.error.code]).toEqual([call, 401, 'unauthorized'])
    }
    const start = await gateway.call('POST', '/v1/workflows/x/start', { key: null, body: '{' })
    expect(start.status).toBe(401)
  })
})

describe('403', () => {
  test('the key lacks the scope of the operation', async () => {
    const { id } = await gateway.createWorkflow()
    const [reader, starter] = [
      await gateway.issueKey({ scopes: ['read'] }),
      await gateway.issueKey({ scopes: ['start'] }),
    ]
    const outcome = async (method: string, path: string, key: string): Promise<string> => {
      const { status, body } = await gateway.call(method, path, {
        key,
        body: method === 'POST' ? { context: 'go' } : undefined,
      })
      return status < 400 ? String(status) : `${status} ${body.error.code}`
    }
    for (const { method, path, scope } of Object.values<Operation>(OPERATIONS)) {
      const outcomes = await Promise.all(
        [reader, starter].map(({ key }) =>
          outcome(method.toUpperCase(), path.replace('{workflow_id}', id).replaceAll(/\{\w+\}/g, newId()), key),
        ),
      )
      const [ofAllowed, ofOther] = scope === 'read' ? outcomes : outcomes.toReversed()
      expect([path, ofOther]).toEqual([path, '403 insufficient_scope'])
      // Of a thing that does not exist, for operations on others than workflows.
      const success = path.replace('{workflow_id}', '').includes('{') ? /^404 not_found$/ : /^20/
      expect(ofAllowed).toMatch(success)
    }
  })

  test('the organization is suspended, for any path', async () => {
    const { key } = await gateway.apply({ organization: { name: 'Suspended', suspended: true } })
    for (const path of [ORGANIZATION, '/v1/workflows?limit=x', '/nowhere']) {
      expect((await gateway.get(path, { key })).body.error.code).toBe('organization_suspended')
    }
  })
})

describe('200', () => {
  test('accepts the scheme in any case', async () => {
    for (const scheme of ['bearer', 'BEARER', 'Bearer ']) {
      const headers = { Authorization: `${scheme} ${gateway.organization.key}` }
      expect((await gateway.get(ORGANIZATION, { key: null, headers })).status).toBe(200)
    }
  })

  test('a new key works at once, also one that was refused before it existed', async () => {
    const { key } = createApiKey()
    expect(await statusWith(key)).toBe(401)
    await gateway.apply({ api_keys: [{ name: newId(), key }] }, gateway.organization.id)
    expect(await statusWith(key)).toBe(200)
  })
})

describe('the cache', () => {
  afterEach(async () => void (await suspend(false)))

  test('looks a key up once for many requests, and never a malformed one', async () => {
    const { key } = await gateway.issueKey()
    const before = await lookUps()
    const startedMs = performance.now()
    const statuses = await Promise.all(Array.from({ length: 50 }, () => statusWith(key)))
    const tookMs = performance.now() - startedMs
    expect(new Set(statuses)).toEqual(new Set([200]))
    const after = await lookUps()
    // On a slow machine, the requests may take longer than the 3 s for which a key is cached.
    expect(after - before).toBeLessThanOrEqual(1 + Math.floor(tookMs / 3_000))
    await Promise.all(Array.from({ length: 50 }, (_, index) => statusWith(`${key.slice(0, -2)}${index + 10}`)))
    expect(await lookUps()).toBe(after)
  })

  // The headers of a limit are not those of the policy that counted the request before.
  test.each<[what: string, status: number, limits: string[] | null, refuse: (id: string) => Promise<unknown>]>([
    [
      'was revoked',
      401,
      ['RateLimit: "failed-authentications"'],
      async (id) => await revokeApiKey(gateway.db, { id }, operatorOf(gateway.organization.id)),
    ],
    ['belongs to an organization that was suspended', 403, null, async () => await suspend(true)],
  ])('a key that %s while the body of its request arrived starts nothing', async (_what, status, limits, refuse) => {
    const { key, apiKey } = await gateway.issueKey()
    const workflow = await gateway.createWorkflow()
    const published = gateway.published.length
    const body = '{"context":"go"}'
    const { url, metricsPort } = await gateway.startAnother({ rateLimitPerMinute: 1_000_000 })
    const reading = () => gateway.metric('http_request_slots_in_use{stage="reading"', `http://127.0.0.1:${metricsPort}`)
    const connection = await openConnection(url)
    connection.write(
      `POST /v1/workflows/${workflow.id}/start HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`,
    )
    await waitUntil(async () => (await reading()) === 1)
    await refuse(apiKey.id)
    await waitUntil(async () => (await gateway.get(ORGANIZATION, { key, url })).status === status)
    connection.write(body)
    const received = await connection.ended
    expect(parseResponse(received)?.status).toBe(status)
    expect(received.match(/^RateLimit: "[\w-]+"/gm)).toEqual(limits)
    expect(gateway.published).toHaveLength(published)
  })
})

/** Makes a key that expires after this time by the clock of the database. */
async function issueKeyFor(interval: string): Promise<string> {
  const { rows } = await gateway.db.pool.query<{ expiresAt: Date }>(
    `SELECT clock_timestamp() + $1::interval AS "expiresAt"`,
    [interval],
  )
  return (await gateway.issueKey({ expiresAt: rows[0]!.expiresAt })).key
}

describe('the cache and its clock', () => {
  let nowMs: number
  let lookUpCount: number
  let cache: ApiKeyCache
  beforeEach(() => {
    nowMs = 1_000_000
    lookUpCount = 0
    cache = createApiKeyCache({ db: gateway.db, now: () => nowMs, onLookUp: (count) => (lookUpCount += count) })
  })

  const find = async (key: string): Promise<Principal | null> => {
    const found = cache.find(key)
    return found && 'run' in found ? found.run() : found
  }
  const isAccepted = async (key: string): Promise<boolean> => (await find(key)) !== null
  /** Whether a look-up of the key is expected; undefined when it needs none. */
  const isExpected = (key: string): boolean | undefined => {
    const found = cache.find(key)
    return found && 'run' in found ? found.isExpected : undefined
  }

  test('uses a key for less than three seconds after it was read', async () => {
    const { key, apiKey } = await gateway.issueKey()
    expect(await isAccepted(key)).toBe(true)
    await revokeApiKey(gateway.db, { id: apiKey.id }, operatorOf(gateway.organization.id))
    nowMs += 2_999
    expect([await isAccepted(key), lookUpCount]).toEqual([true, 1])
    nowMs += 1
    expect([await isAccepted(key), lookUpCount]).toEqual([false, 2])
  })

  test('expects the look-up of a key that was valid in the last ten minutes, or that is being looked up', async () => {
    const { key } = await gateway.issueKey()
    expect(isExpected(key)).toBe(false)
    const found = find(key)
    expect(isExpected(key)).toBe(true)
    await found
    expect(isExpected(key)).toBeUndefined()
    nowMs += 599_999
    expect([isExpected(key), isExpected(forge(key))]).toEqual([true, false])
    nowMs += 1
    expect(isExpected(key)).toBe(false)
  })

  test('does not expect the look-up of a revoked or expired key', async () => {
    const revoked = await gateway.issueKey()
    await revokeApiKey(gateway.db, { id: revoked.apiKey.id }, operatorOf(gateway.organization.id))
    const expired = await gateway.issueKey({ expiresAt: new Date(Date.now() - 60_000) })
    for (const { key } of [revoked, expired]) {
      expect(await isAccepted(key)).toBe(false)
      nowMs += 3_000
      expect(isExpected(key)).toBe(false)
    }
  })

  test('lets a cached key expire by the time since its look-up, at any time of day of the gateway', async () => {
    const key = await issueKeyFor('1 minute')
    {
      using clock = jest.spyOn(Date, 'now')
      clock.mockReturnValue(Date.now() + 86_400_000)
      expect(await isAccepted(key)).toBe(true)
    }
    // Another one if it has expired before it was looked up.
    const soon = await waitUntil(async () => {
      const issued = await issueKeyFor('2 seconds')
      return (await isAccepted(issued)) ? issued : undefined
    })
    const before = lookUpCount
    nowMs += 2_100
    expect([await isAccepted(soon), lookUpCount]).toEqual([false, before])
  })
})

test('last_used_at is written for many requests together when the gateway stops, and by no failed authentication', async () => {
  const other = await gateway.startAnother()
  const [used, forged] = [await gateway.issueKey(), await gateway.issueKey()]
  const startedAt = Date.now()
  await Promise.all(Array.from({ length: 20 }, () => statusWith(used.key, other.url)))
  await statusWith(forge(forged.key), other.url)
  expect(await lastUsed(used.apiKey.id)).toBeNull()
  await other.stop()
  expect((await lastUsed(used.apiKey.id))?.getTime()).toBeGreaterThanOrEqual(startedAt - 1_000)
  expect(await lastUsed(forged.apiKey.id)).toBeNull()
})

test('the database and the log never contain the key', async () => {
  const { key, apiKey } = await gateway.issueKey()
  await statusWith(key)
  await gateway.get(ORGANIZATION, { key: null, headers: { Authorization: `Basic ${key}` } })
  const { rows } = await gateway.db.pool.query('SELECT * FROM api_keys WHERE id = $1', [apiKey.id])
  expect(rows[0]).toMatchObject({ key_sha256: hashApiKey(key), prefix: key.slice(0, 12) })
  expect(JSON.stringify(rows)).not.toContain(key)
  await waitUntil(() => gateway.logLines.some(({ key_prefix: prefix }) => prefix === apiKey.prefix))
  expect(JSON.stringify(gateway.logLines)).not.toContain(key)
})

/** Creates a well-formed key with the same prefix and another secret. */
function forge(key: string): string {
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  const unchecked = key.slice(0, 'wfk_12345678_'.length) + createApiKey().key.slice(13, 13 + 32)
  const checksum = Array.from({ length: 6 }, (_, index) => Math.floor(crc32(unchecked) / 62 ** (5 - index)) % 62)
  return unchecked + checksum.map((value) => digits[value]).join('')
}

describe('the organization', () => {
  test('is that of the key', async () => {
    expect((await gateway.get(ORGANIZATION)).body).toEqual({ id: gateway.organization.id, name: 'Acme' })
    const other = await gateway.apply({ organization: { name: 'Umlaut & "Söhne" 🚀' } })
    const { body } = await gateway.get(ORGANIZATION, { key: other.key })
    expect(body).toEqual({ id: other.id, name: 'Umlaut & "Söhne" 🚀' })
  })

  test('ignores unknown query parameters, a body and its type', async () => {
    const { status } = await gateway.get('/v1/organization?limit=x&%ff', {
      body: 'no json',
      headers: { 'Content-Type': 'text/plain' },
    })
    expect(status).toBe(200)
  })
})
