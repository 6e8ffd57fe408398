import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import type { PoolClient } from 'pg'
import type { Database } from '../../src/index.ts'
import { onConnection } from './on-connection.ts'

type Pooled = Pick<Database, 'pool' | 'prisma'>

/** How many rows of one table a call may read, and the call. */
export type CountedCall = readonly [maxRows: number, call: (on: Pooled) => Promise<unknown>]

/** The ids of the rows that a test fills tables with, and the SQL for that of row `n`. */
export function rowIds(tables: readonly string[]) {
  return {
    id: (table: string, n: number): string =>
      `${tables.indexOf(table).toString(16).padStart(8, '0')}-0000-4000-8000-${n.toString(16).padStart(12, '0')}`,
    sqlId: (table: string): string =>
      `(lpad(to_hex(${tables.indexOf(table)}), 8, '0') || '-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`,
  }
}

/**
 * Tests that each call finds its rows by index in the tables that `seed` fills, with plans that were made on empty, on
 * never analyzed and on analyzed tables.
 */
export function testReads(
  what: string,
  tables: readonly string[],
  calls: Readonly<Record<string, CountedCall>>,
  seed: (db: Database) => Promise<void>,
) {
  const clients: PoolClient[] = []
  // Before useTestDatabase, because hooks run in this order: its pool does not close while it waits for these clients.
  afterAll(() => {
    for (const client of clients) client.release(true)
  })
  const database = useTestDatabase({ statementTimeoutMs: 60_000 })
  const connectAndCall = async () => {
    const client = await database.db.pool.connect()
    clients.push(client)
    for (const [maxRows, call] of Object.values(calls))
      await excessiveReads(client, tables, maxRows, call).catch(() => {})
  }
  beforeAll(async () => {
    const { db } = database
    for (const table of tables) await db.pool.query(`ALTER TABLE ${table} SET (autovacuum_enabled = false)`)
    await connectAndCall()
    await seed(db)
    await connectAndCall()
  })
  const analyze = async () => {
    await database.db.pool.query('ANALYZE')
    clients.push(await database.db.pool.connect())
  }
  describe.each([
    ['when it was planned on empty tables', 0, async () => {}],
    ['on tables that were never analyzed', 1, async () => {}],
    ['on analyzed tables', 2, analyze],
  ])(`${what} finds its rows by index %s`, (_when, index, prepare) => {
    beforeAll(prepare)
    test.each(Object.entries(calls))('%s', async (_name, [maxRows, call]) => {
      expect(await excessiveReads(clients[index]!, tables, maxRows, call)).toEqual([])
    })
  })
  return database
}

/** What a transaction has read of a table. */
interface TableReads {
  readonly table: string
  /** Sequential scans. */
  readonly scans: number
  /** Rows, also those that it filtered out. */
  readonly rows: number
}

async function countReads(client: PoolClient, tables: readonly string[]): Promise<Map<string, TableReads>> {
  const { rows } = await client.query<TableReads>(
    `SELECT relname AS table, seq_scan::integer AS scans, (seq_tup_read + coalesce(idx_tup_fetch, 0))::integer AS rows
     FROM pg_stat_xact_user_tables WHERE relname = ANY ($1)`,
    [tables],
  )
  return new Map(rows.map((row) => [row.table, row]))
}

/** What a call resolves to, and what it reads of the tables. What it writes is rolled back. */
export async function readsOf<Result>(
  client: PoolClient,
  tables: readonly string[],
  call: (on: Pooled) => Promise<Result>,
): Promise<{ result: Result; reads: readonly TableReads[] }> {
  await client.query('BEGIN')
  try {
    const before = await countReads(client, tables)
    const result = await call(onConnection(client))
    const after = await countReads(client, tables)
    const reads = tables.map((table) => ({
      table,
      scans: after.get(table)!.scans - before.get(table)!.scans,
      rows: after.get(table)!.rows - before.get(table)!.rows,
    }))
    return { result, reads }
  } finally {
    await client.query('ROLLBACK')
  }
}

/** A pool that also explains each statement, and the most rows that a join of one of them compared in vain. */
export function explaining({ pool }: Pick<Database, 'pool'>): { on: Database; mostCompared: () => number } {
  const removed: number[] = []
  const query = async (given: string | { text: string; values: unknown[] }, values?: unknown[]): Promise<unknown> => {
    const [text, parameters] = typeof given === 'string' ? [given, values] : [given.text, given.values]
    const plan = await pool.query<{ 'QUERY PLAN': string }>(`EXPLAIN (ANALYZE, TIMING OFF) ${text}`, parameters)
    const found = plan.rows.map((row) => /Removed by Join Filter: (\d+)/.exec(row['QUERY PLAN'])?.[1])
    removed.push(...found.map((count) => Number(count ?? 0)))
    return await pool.query(text, parameters)
  }
  return { on: { pool: { query } } as never, mostCompared: () => Math.max(...removed) }
}

/** The tables that a call scans, or of which it reads more than `maxRows` rows. What the call writes is rolled back. */
async function excessiveReads(
  client: PoolClient,
  tables: readonly string[],
  maxRows: number,
  call: (on: Pooled) => Promise<unknown>,
): Promise<TableReads[]> {
  const { reads } = await readsOf(client, tables, call)
  return reads.filter(({ scans, rows }) => scans > 0 || rows > maxRows)
}
