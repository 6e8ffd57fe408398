import { setTimeout as sleep } from 'node:timers/promises'
import { createDatabase } from '@workflow-service/database'
import { percentile } from '../../shared/figures.ts'
import { assertSucceeded, runLoad, startLoad } from '../../shared/load.ts'
import { retire, runStarts } from './calls.ts'
import type { LargeTables } from './seed-large-tables.ts'
import { type Measure, unmeasured } from './statement-cost.ts'

const STARTS_PER_SECOND = 200
const STARTS_AT_ONCE = 20
const BATCH_SIZE = 1_000
const MIN_PAUSE_MS = 100
const PIECES = 10

/** Pauses after each batch, as the dispatcher does. */
const withPauses: Measure = async (_name, call) => {
  const startedAt = performance.now()
  const result = await call()
  await sleep(Math.max(MIN_PAUSE_MS, performance.now() - startedAt))
  return result
}

/**
 * Lets starts arrive for `seconds`, and deletes old ones in every other tenth of that time as the dispatcher does.
 * Measures the time that all statements of 20 starts take together, with retention and without.
 */
export async function measureRetentionLoad(
  url: string,
  tables: LargeTables,
  { seconds, olderThanDays }: { seconds: number; olderThanDays: number },
) {
  const db = createDatabase({ url, applicationName: 'bench', maxConnections: 20 })
  const retention = createDatabase({ url, applicationName: 'retention', maxConnections: 1 })
  const times = { with: [] as number[], without: [] as number[] }
  let [retired, retentionMs] = [0, 0]
  for (let piece = 0; piece < PIECES; piece += 1) {
    const isRetiring = piece % 2 === 1
    const startedAt = performance.now()
    const retiring = startLoad({
      callers: isRetiring ? 1 : 0,
      async call() {
        const batches = { olderThanDays, batchSize: BATCH_SIZE }
        retired += (await retire(retention, tables, batches, withPauses)).runs
      },
    })
    const calls = await runLoad({
      everyMs: (1_000 * STARTS_AT_ONCE) / STARTS_PER_SECOND,
      count: Math.round((seconds / PIECES) * (STARTS_PER_SECOND / STARTS_AT_ONCE)),
      call: async () => await runStarts(db, tables, STARTS_AT_ONCE, unmeasured),
    })
    await retiring.stop()
    assertSucceeded(retiring.calls)
    if (isRetiring) retentionMs += performance.now() - startedAt
    times[isRetiring ? 'with' : 'without'].push(...calls.map(({ ms }) => ms))
  }
  await db.close()
  await retention.close()
  return {
    p95WithMs: percentile(times.with, 0.95),
    p95WithoutMs: percentile(times.without, 0.95),
    startsPerSecond: ((times.with.length + times.without.length) * STARTS_AT_ONCE) / seconds,
    /** Starts of which delivery, journal, run and session were deleted, per second of retention. */
    retiredPerSecond: retired / (retentionMs / 1_000),
  }
}
