import type { Db } from '../connection/index.ts'

/** The gauges of the whole system: the backlog and the queue. */
const SYSTEM = 'system'

/**
 * Longer than the usual interval between two scrapes (15 to 60 s), so that the reporter stays the same. After this time
 * another process takes over from one that is no longer scraped.
 */
export const REPORTER_LEASE_MS = 90_000

/**
 * Says whether this process exports the gauges of the whole system: it does already, or no other process did lately. To
 * be called at each scrape. `owner` is unique per process start.
 */
export async function isGaugeReporter(db: Db, owner: string): Promise<boolean> {
  const { rowCount } = await db.pool.query(
    `INSERT INTO gauge_reporters AS reporter (name, owner, until)
     VALUES ($1, $2, clock_timestamp() + $3 * interval '1 millisecond')
     ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until
     WHERE reporter.owner = excluded.owner OR reporter.until < clock_timestamp()`,
    [SYSTEM, owner, REPORTER_LEASE_MS],
  )
  return rowCount === 1
}

/** Lets another process take over at once, when this one stops. */
export async function stopReportingGauges(db: Db, owner: string): Promise<void> {
  await db.pool.query('DELETE FROM gauge_reporters WHERE name = $1 AND owner = $2', [SYSTEM, owner])
}
