import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { waitUntil } from '@workflow-service/testkit'
import { announcePresence, createDatabase, type Database, findDeliveryState, newId } from '../src/index.ts'
import { type OpenDatabase, openDatabase } from './support/open-database.ts'

const organizationId = newId()

let opened: OpenDatabase
let db: Database

beforeAll(async () => {
  opened = await openDatabase({ maxConnections: 4 })
  db = opened.db
  await db.prisma.organization.create({ data: { id: organizationId, name: 'Acme' } })
}, 120_000)
afterAll(() => opened.close())

/** Records a delivery of this sender and resolves with a function that tells whether the sender is absent. */
async function deliveryOf(sender: string, outcome = 'in_flight'): Promise<() => Promise<boolean | undefined>> {
  const id = newId()
  await db.prisma.delivery.create({
    data: {
      id,
      organizationId,
      sourceId: newId(),
      kind: 'payload',
      outcome,
      requestBody: {},
      sender: BigInt(sender),
      finishedAt: outcome === 'in_flight' ? null : new Date(),
    },
  })
  return async () => (await findDeliveryState(db, organizationId, id))?.isSenderAbsent
}

describe('the presence of a sender', () => {
  test('is seen as long as it runs', async () => {
    const process = createDatabase({ url: opened.url, applicationName: 'sender', maxConnections: 2 })
    const presence = announcePresence(process)
    await waitUntil(() => presence.isSeen)
    const isAbsent = await deliveryOf(presence.key)
    expect(await isAbsent()).toBe(false)
    // Being asked takes nothing away.
    expect(await Promise.all([isAbsent(), isAbsent(), isAbsent()])).toEqual([false, false, false])
    await presence.close()
    // The server lets the lock go when it has read the end of the connection: a moment later.
    await waitUntil(isAbsent)
    await process.close()
  })

  test('comes back after its connection broke', async () => {
    const process = createDatabase({ url: opened.url, applicationName: 'sender', maxConnections: 2 })
    const presence = announcePresence(process)
    await waitUntil(() => presence.isSeen)
    const isAbsent = await deliveryOf(presence.key)
    const holder = async (): Promise<number | undefined> => {
      const found = await db.pool.query<{ pid: number }>(
        `SELECT l.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid)
         WHERE l.locktype = 'advisory' AND l.granted AND a.application_name = 'sender'`,
      )
      return found.rows[0]?.pid
    }
    const before = await holder()
    await db.pool.query('SELECT pg_terminate_backend($1)', [before])
    const after = await waitUntil(async () => ((await holder()) === before ? undefined : await holder()))
    expect(after).not.toBe(before)
    expect(await isAbsent()).toBe(false)
    await presence.close()
    await process.close()
  })

  test('does not matter once the outcome is known', async () => {
    const isAbsent = await deliveryOf('4711', 'unknown')
    expect(await isAbsent()).toBe(false)
  })

  test('is another one for each process', () => {
    const keys = Array.from({ length: 3 }, () => {
      const presence = announcePresence({ pool: { connect: () => Promise.reject(new Error('away')) } as never })
      void presence.close()
      return presence.key
    })
    expect(new Set(keys).size).toBe(3)
    for (const key of keys) expect(BigInt(key)).toBeLessThan(2n ** 63n)
  })
})
