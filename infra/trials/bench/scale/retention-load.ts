import { setTimeout as sleep } from 'node:timers/promises'
import { createDatabase, type Database } from '@workflow-service/database'
import { percentile } from '../../shared/figures.ts'
import { runLoad } from '../../shared/load.ts'
import { retire, runStarts } from './calls.ts'
import type { LargeTables } from './seed-large-tables.ts'

const STARTS_PER_SECOND = 200
const STARTS_AT_ONCE = 20
const BATCH_SIZE = 1_000
const MIN_PAUSE_MS = 100

const unmeasured = async <Result>(_name: string, call: () => Promise<Result>): Promise<Result> => await call()

/**
 * Lets starts arrive for `seconds`, and deletes old ones in every other tenth of that time as the dispatcher does.
 * Measures the time that all statements of 20 starts take together, with retention and without.
 */
export async function measureRetentionLoad(
  url: string,
  tables: LargeTables,
  { seconds, olderThanDays }: { seconds: number; olderThanDays: number },
) {
  const load = createDatabase({ url, applicationName: 'bench', maxConnections: 20 })
  const retention = createDatabase({ url, applicationName: 'retention', maxConnections: 1 })
  const pieces = 10
  const times = { with: [] as number[], without: [] as number[] }
  let [retired, starts, retentionMs] = [0, 0, 0]
  try {
    for (let piece = 0; piece < pieces; piece += 1) {
      const isRetiring = piece % 2 === 1
      const stopping = new AbortController()
      const startedAt = performance.now()
      const retiring = isRetiring ? retireUntil(retention, tables, olderThanDays, stopping.signal) : undefined
      const taken = await startSteadily(load, tables, seconds / pieces)
      stopping.abort()
      retired += (await retiring) ?? 0
      if (isRetiring) retentionMs += performance.now() - startedAt
      times[isRetiring ? 'with' : 'without'].push(...taken)
      starts += taken.length * STARTS_AT_ONCE
    }
  } finally {
    await load.close()
    await retention.close()
  }
  return {
    p95WithMs: percentile(times.with, 0.95),
    p95WithoutMs: percentile(times.without, 0.95),
    startsPerSecond: starts / seconds,
    /** Starts of which delivery, journal, run and session were deleted, per second of retention. */
    retiredPerSecond: retired / (retentionMs / 1_000),
  }
}

/** Resolves to the time of each group of starts. */
async function startSteadily(db: Database, tables: LargeTables, seconds: number): Promise<number[]> {
  const calls = await runLoad({
    everyMs: (1_000 * STARTS_AT_ONCE) / STARTS_PER_SECOND,
    count: Math.round((seconds * STARTS_PER_SECOND) / STARTS_AT_ONCE),
    call: async () => await runStarts(db, tables, STARTS_AT_ONCE, unmeasured),
  })
  return calls.map(({ ms }) => ms)
}

async function retireUntil(
  db: Database,
  tables: LargeTables,
  olderThanDays: number,
  signal: AbortSignal,
): Promise<number> {
  let runs = 0
  while (!signal.aborted) {
    const counts = await retire(db, tables, { olderThanDays, batchSize: BATCH_SIZE }, async (_name, call) => {
      const startedAt = performance.now()
      const result = await call()
      await sleep(Math.max(MIN_PAUSE_MS, performance.now() - startedAt))
      return result
    })
    runs += counts.runs
  }
  return runs
}
