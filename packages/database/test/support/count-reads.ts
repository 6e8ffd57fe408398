import type { PoolClient } from 'pg'
import type { Database } from '../../src/index.ts'
import { onConnection } from './on-connection.ts'

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
  call: (on: Pick<Database, 'pool' | 'prisma'>) => Promise<Result>,
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

/** The tables that a call scans, or of which it reads more than `maxRows` rows. */
export async function excessiveReads(
  client: PoolClient,
  tables: readonly string[],
  maxRows: number,
  call: (on: Pick<Database, 'pool' | 'prisma'>) => Promise<unknown>,
): Promise<TableReads[]> {
  const { reads } = await readsOf(client, tables, call)
  return reads.filter(({ scans, rows }) => scans > 0 || rows > maxRows)
}
