import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import {
  applyManifests,
  createApiKey,
  createDatabase,
  type Database,
  issueApiKey,
  newId,
  revokeApiKey,
  toManifest,
} from '@workflow-service/database'
import { createTestDatabase, type TestDatabase, waitUntil } from '@workflow-service/testkit'
import { createKeyRing, type KeyRing } from '../src/key-ring.ts'

let database: TestDatabase
let db: Database
let organizationId: string
// The ring's clock stands still unless a test moves it: what changes by itself, changes by the news alone.
let nowMs: number
let lookUps: number
let ring: KeyRing

beforeAll(async () => {
  database = await createTestDatabase()
  db = createDatabase({ url: database.url, applicationName: 'test' })
})
afterAll(async () => {
  await db.close()
  await database.drop()
})
beforeEach(async () => {
  organizationId = newId()
  await applyManifests(db, [toManifest({ organization: { id: organizationId, name: 'Acme' } })])
  nowMs = 0
  lookUps = 0
  ring = createKeyRing({ db, now: () => nowMs, onLookUp: (prefixes) => (lookUps += prefixes) })
})
afterEach(() => ring.close())

const holds = async (key: string): Promise<boolean> => (await ring.holderOf(key)) !== null
const issue = () => issueApiKey(db, organizationId, { name: newId(), scopes: ['read'], expiresAt: null })
/** Asks until the answer comes from what the ring keeps. */
const keep = (key: string): Promise<unknown> =>
  waitUntil(async () => {
    const before = lookUps
    await ring.holderOf(key)
    return lookUps === before
  })

describe('a ring that hears of changes', () => {
  test('knows a key as soon as it is made, also one that was tried before', async () => {
    const { key } = createApiKey()
    await keep(key)
    expect(await holds(key)).toBe(false)
    const organization = { id: organizationId, name: 'Acme' }
    await applyManifests(db, [toManifest({ organization, api_keys: [{ name: 'ci', key }] })])
    await waitUntil(() => holds(key))
  })

  test('lets go of a key as soon as it is revoked', async () => {
    const { key, apiKey } = await issue()
    await keep(key)
    expect(await holds(key)).toBe(true)
    await revokeApiKey(db, organizationId, { id: apiKey.id })
    await waitUntil(async () => !(await holds(key)))
  })

  test('says that an organization is suspended as soon as it is', async () => {
    const { key } = await issue()
    await keep(key)
    expect(await ring.holderOf(key)).toMatchObject({ isSuspended: false })
    await db.pool.query('UPDATE organizations SET is_suspended = true WHERE id = $1', [organizationId])
    await waitUntil(async () => (await ring.holderOf(key))?.isSuspended)
  })

  test('looks again for an unknown key after a second', async () => {
    const { key } = createApiKey()
    await keep(key)
    const before = lookUps
    nowMs = 999
    await holds(key)
    expect(lookUps).toBe(before)
    nowMs = 1_000
    await holds(key)
    expect(lookUps).toBe(before + 1)
  })
})

test('a ring that hears of nothing lets go of a revoked key after three seconds', async () => {
  const { key, apiKey } = await issue()
  await keep(key)
  await db.pool.query('ALTER TABLE api_keys DISABLE TRIGGER api_keys_announce')
  try {
    await revokeApiKey(db, organizationId, { id: apiKey.id })
    nowMs = 2_999
    expect(await holds(key)).toBe(true)
    nowMs = 3_000
    expect(await holds(key)).toBe(false)
  } finally {
    await db.pool.query('ALTER TABLE api_keys ENABLE TRIGGER api_keys_announce')
  }
})
