import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { markAbandonedDeliveries, newId } from '@workflow-service/database'
import { createLogger, createMetrics } from '@workflow-service/service-kit'
import { waitUntil } from '@workflow-service/testkit'
import { createDeliveryMetrics } from '../src/metrics.ts'
import { deleteOldLogEntries } from '../src/maintenance.ts'
import { startTestDispatcher, type TestDispatcher } from './support/test-dispatcher.ts'

let dispatcher: TestDispatcher

beforeAll(async () => {
  // Its own retention is off: each test calls for one.
  dispatcher = await startTestDispatcher({}, { DELIVERY_LOG_RETENTION_DAYS: '0' })
}, 120_000)
afterAll(async () => {
  await dispatcher.stop()
})
beforeEach(async () => {
  await dispatcher.db.prisma.delivery.deleteMany()
})

const DAY_MS = 86_400_000

/** Entries of one source, each of the given age. */
async function record(sourceId: string, agesMs: number[], outcome = 'accepted'): Promise<void> {
  await dispatcher.db.prisma.delivery.createMany({
    data: agesMs.map((ageMs) => ({
      id: newId(),
      organizationId: dispatcher.organizationId,
      sourceId,
      kind: 'payload',
      outcome,
      status: outcome === 'accepted' ? 200 : null,
      requestBody: {},
      createdAt: new Date(Date.now() - ageMs),
      finishedAt: outcome === 'in_flight' ? null : new Date(),
    })),
  })
}

const left = (sourceId: string): Promise<number> => dispatcher.db.prisma.delivery.count({ where: { sourceId } })

const trim = (logRetentionDays: number): Promise<number> => {
  const metrics = createMetrics('test')
  const ctx = {
    db: dispatcher.db,
    config: { ...dispatcher.config, logRetentionDays },
    logger: createLogger({ service: 'test', level: 'silent' }),
    deliveryMetrics: createDeliveryMetrics(metrics, { inFlight: () => 0, waiting: () => 0, unrecorded: () => 0 }),
  }
  return deleteOldLogEntries(ctx, new AbortController().signal)
}

describe('the retention', () => {
  test('deletes what is older than its days, of every source, and nothing else', async () => {
    const sources = Array.from({ length: 5 }, newId)
    for (const source of sources) await record(source, [91 * DAY_MS, 90.01 * DAY_MS, 89.9 * DAY_MS, 0])
    const young = newId()
    await record(young, [1, 2, 3])
    expect(await trim(90)).toBe(10)
    expect(await Promise.all(sources.map(left))).toEqual([2, 2, 2, 2, 2])
    expect(await left(young)).toBe(3)
    expect(await trim(90)).toBe(0)
  })

  test('goes on batch by batch until none is left', async () => {
    const source = newId()
    await record(
      source,
      Array.from({ length: 2_500 }, () => 2 * DAY_MS),
    )
    await record(source, [0])
    expect(await trim(1)).toBe(2_500)
    expect(await left(source)).toBe(1)
  })

  test('several dispatchers at once delete each entry once', async () => {
    const source = newId()
    await record(
      source,
      Array.from({ length: 2_500 }, () => 2 * DAY_MS),
    )
    const counts = await Promise.all([trim(1), trim(1), trim(1)])
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(2_500)
    expect(await left(source)).toBe(0)
  })

  test('leaves what is still in flight, however old', async () => {
    const source = newId()
    await record(source, [100 * DAY_MS], 'in_flight')
    await trim(90)
    expect(await left(source)).toBe(1)
  })
})

describe('giving up', () => {
  test('makes unknown what has been in flight for longer than any sending takes', async () => {
    const source = newId()
    await record(source, [121_000, 119_000], 'in_flight')
    await record(source, [121_000], 'accepted')
    expect(await markAbandonedDeliveries(dispatcher.db, { olderThanMs: 120_000 })).toBe(1)
    const outcomes = await dispatcher.db.prisma.delivery.findMany({
      where: { sourceId: source },
      orderBy: { createdAt: 'asc' },
      select: { outcome: true, finishedAt: true },
    })
    expect(outcomes.map(({ outcome }) => outcome).toSorted()).toEqual(['accepted', 'in_flight', 'unknown'])
    expect(await markAbandonedDeliveries(dispatcher.db, { olderThanMs: 120_000 })).toBe(0)
  })

  test('is what a running dispatcher does by itself', async () => {
    const source = newId()
    await record(source, [121_000], 'in_flight')
    await dispatcher.startAnother()
    const outcome = (): Promise<string | undefined> =>
      dispatcher.db.prisma.delivery.findFirst({ where: { sourceId: source } }).then((found) => found?.outcome)
    expect(await waitUntil(async () => (await outcome()) === 'unknown')).toBe(true)
  })
})
