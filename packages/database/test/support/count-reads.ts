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

/** The tables that a call scans, or of which it reads more than `maxRows` rows. What the call writes is rolled back. */
export async function excessiveReads(
  client: PoolClient,
  tables: readonly string[],
  maxRows: number,
  call: (on: Pick<Database, 'pool' | 'prisma'>) => Promise<unknown>,
): Promise<TableReads[]> {
  await client.query('BEGIN')
  try {
    const before = await countReads(client, tables)
    await call(onConnection(client))
    const after = await countReads(client, tables)
    return tables
      .map((table) => ({
        table,
        scans: after.get(table)!.scans - before.get(table)!.scans,
        rows: after.get(table)!.rows - before.get(table)!.rows,
      }))
      .filter(({ scans, rows }) => scans > 0 || rows > maxRows)
  } finally {
    await client.query('ROLLBACK')
  }
}
