import { createDatabase, type Database } from '@workflow-service/database'
import { Client } from 'pg'
import { median } from '../../shared/figures.ts'

/** What a call costs PostgreSQL, as medians. */
export interface StatementCost {
  /** From the call to its answer. */
  readonly ms: number
  /** Pages of 8 kB that were looked at, in memory or not. Does not depend on the load of the machine. */
  readonly pages: number
  /** Bytes of the write-ahead log. */
  readonly walBytes: number
}

/** Runs a call, and records what it costs under the name, if it is one that measures. */
export type Measure = <Result>(name: string, call: () => Promise<Result>) => Promise<Result>

export const unmeasured: Measure = async (_name, call) => await call()

/** A database on one connection, whose page reads and bytes of write-ahead log are counted. */
export interface MeasuredDatabase {
  readonly db: Database
  readonly measure: Measure
  /** The medians of each name. */
  costs(): Map<string, StatementCost>
  close(): Promise<void>
}

/** @param adminUrl The same database as a superuser, who may read the counters of another connection. */
export async function measureDatabase(url: string, adminUrl: string): Promise<MeasuredDatabase> {
  const db = createDatabase({ url, applicationName: 'bench', maxConnections: 1, statementTimeoutMs: 120_000 })
  const observer = new Client({ connectionString: adminUrl })
  await observer.connect()
  const { rows } = await db.pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  const pid = rows[0]?.pid
  const samplesByName = new Map<string, { ms: number[]; pages: number[]; walBytes: number[] }>()

  /**
   * The counters of the connection since it was opened. PostgreSQL publishes them at the end of a transaction, at once
   * if it is asked to.
   */
  async function readCounters(): Promise<{ pages: number; walBytes: number }> {
    await db.pool.query('SELECT pg_stat_force_next_flush()')
    const counted = await observer.query<{ pages: number; walBytes: number }>(
      `SELECT (SELECT sum(coalesce(hits, 0) + coalesce(reads, 0))::float8 FROM pg_stat_get_backend_io($1)) AS pages,
         (SELECT wal_bytes::float8 FROM pg_stat_get_backend_wal($1)) AS "walBytes"`,
      [pid],
    )
    return counted.rows[0] ?? { pages: 0, walBytes: 0 }
  }

  return {
    db,
    async measure(name, call) {
      const before = await readCounters()
      const startedAt = performance.now()
      const result = await call()
      const ms = performance.now() - startedAt
      const after = await readCounters()
      const samples = samplesByName.get(name) ?? { ms: [], pages: [], walBytes: [] }
      samplesByName.set(name, samples)
      samples.ms.push(ms)
      samples.pages.push(after.pages - before.pages)
      samples.walBytes.push(after.walBytes - before.walBytes)
      return result
    },
    costs: () =>
      new Map(
        [...samplesByName].map(([name, { ms, pages, walBytes }]) => [
          name,
          { ms: median(ms), pages: median(pages), walBytes: median(walBytes) },
        ]),
      ),
    async close() {
      await db.close()
      await observer.end()
    },
  }
}
