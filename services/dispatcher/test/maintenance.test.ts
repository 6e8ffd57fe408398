import { beforeEach, describe, expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { createCapturedLogger, waitUntil } from '@workflow-service/testkit'
import { createMetrics } from '@workflow-service/service-kit'
import { deleteOldLogEntries } from '../src/maintenance.ts'
import { createDeliveryMetrics } from '../src/metrics.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

// The dispatcher's own retention is off: each test runs it itself.
const dispatcher = useDispatcher({}, { DELIVERY_LOG_RETENTION_DAYS: '0' })

beforeEach(async () => {
  await dispatcher.db.prisma.delivery.deleteMany()
})

const DAY_MS = 86_400_000

/** Records entries of one source with the given ages. */
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

const countEntries = (sourceId: string): Promise<number> => dispatcher.db.prisma.delivery.count({ where: { sourceId } })

const deleteOld = (logRetentionDays: number): Promise<number> => {
  const ctx = {
    db: dispatcher.db,
    config: { ...dispatcher.config, logRetentionDays },
    logger: createCapturedLogger().logger,
    deliveryMetrics: createDeliveryMetrics(createMetrics('test'), {
      inFlight: () => 0,
      waiting: () => 0,
      unrecorded: () => 0,
    }),
  }
  return deleteOldLogEntries(ctx, new AbortController().signal)
}

describe('the retention', () => {
  test('deletes the entries of every source that are older than its days, and no others', async () => {
    const sources = Array.from({ length: 5 }, newId)
    for (const source of sources) await record(source, [91 * DAY_MS, 90.01 * DAY_MS, 89.9 * DAY_MS, 0])
    const young = newId()
    await record(young, [1, 2, 3])
    expect(await deleteOld(90)).toBe(10)
    expect(await Promise.all(sources.map(countEntries))).toEqual([2, 2, 2, 2, 2])
    expect(await countEntries(young)).toBe(3)
    expect(await deleteOld(90)).toBe(0)
  })

  test('deletes batch after batch, and each entry once if several dispatchers run it', async () => {
    const source = newId()
    const ages = Array.from({ length: 2_500 }, () => 2 * DAY_MS)
    await record(source, [...ages, 0])
    const counts = await Promise.all([deleteOld(1), deleteOld(1), deleteOld(1)])
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(2_500)
    expect(await countEntries(source)).toBe(1)
  })

  test('keeps deliveries in flight, however old', async () => {
    const source = newId()
    await record(source, [100 * DAY_MS], 'in_flight')
    await deleteOld(90)
    expect(await countEntries(source)).toBe(1)
  })
})

describe('abandoned deliveries', () => {
  test('become unknown half as long again after their deadline, without a call for them', async () => {
    const source = newId()
    await record(source, [61_000, 55_000], 'in_flight')
    await record(source, [61_000], 'accepted')
    await dispatcher.startAnother()
    const outcomes = async (): Promise<string[]> => {
      const entries = await dispatcher.db.prisma.delivery.findMany({ where: { sourceId: source } })
      return entries.map(({ outcome }) => outcome).toSorted()
    }
    await waitUntil(async () => (await outcomes()).includes('unknown'))
    expect(await outcomes()).toEqual(['accepted', 'in_flight', 'unknown'])
  })
})
