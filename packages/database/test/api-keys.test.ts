import { beforeAll, describe, expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { findPrincipals, issueApiKey, listApiKeys, touchApiKeys } from '../src/organizations/api-keys.ts'
import type { Database } from '../src/connection/client.ts'
import { newId } from '../src/connection/ids.ts'

const database = useTestDatabase()
let db: Database
const organizationId = newId()

beforeAll(async () => {
  db = database.db
  await db.prisma.organization.create({ data: { id: organizationId, name: 'Acme' } })
})

const issue = (change: Partial<Parameters<typeof issueApiKey>[2]> = {}) =>
  issueApiKey(db, organizationId, { name: newId(), scopes: ['read'], expiresAt: null, ...change })

describe('issueApiKey', () => {
  test('stores an expiry, which findPrincipals compares with the clock of the database', async () => {
    const { rows } = await db.pool.query<{ now: Date }>('SELECT clock_timestamp() AS now')
    const inSeconds = (seconds: number) => new Date(rows[0]!.now.getTime() + seconds * 1_000)
    const expiries = [inSeconds(3_600), inSeconds(-60), null]
    const keys = await Promise.all(expiries.map((expiresAt) => issue({ expiresAt })))
    const endless = await issue({ expiresAt: inSeconds(1) })
    await db.pool.query("UPDATE api_keys SET expires_at = 'infinity' WHERE id = $1", [endless.apiKey.id])
    const expiry = async ({ apiKey: { prefix } }: (typeof keys)[number]) =>
      (await findPrincipals(db, [prefix]))[0]?.expiresInMs
    const [future, past, never] = await Promise.all(keys.map(expiry))
    expect(future).toBeGreaterThan(3_000_000)
    expect(future).toBeLessThanOrEqual(3_600_000)
    expect(past).toBeLessThanOrEqual(-60_000)
    expect([never, await expiry(endless)]).toEqual([null, null])
  })
})

describe('touchApiKeys', () => {
  test('advances the times of many keys at once, and never sets an earlier time', async () => {
    const [{ apiKey: one }, { apiKey: two }] = [await issue(), await issue()]
    const [early, late] = [new Date('2026-01-01T00:00:00Z'), new Date('2026-01-02T00:00:00Z')]
    const touch = (...used: [string, Date][]) => touchApiKeys(db, new Map(used))
    await touch([one.id, late], [two.id, early])
    await touch([two.id, late], [one.id, early], [newId(), late])
    const times = new Map((await listApiKeys(db, organizationId)).map((key) => [key.id, key.last_used_at]))
    expect([times.get(one.id), times.get(two.id)]).toEqual([late.toISOString(), late.toISOString()])
  })
})
