import type { Connection } from './client.ts'

/** A row whose columns are named as in the contract; pg returns times as dates. */
export type RowOf<Out> = { readonly [Name in keyof Out]: Out[Name] | Date }

/** Returns a row with its times as texts. */
export function datesToIso<Out extends object>(row: RowOf<Out>): Out {
  const entries = Object.entries<unknown>(row).map(([name, value]) => [
    name,
    value instanceof Date ? value.toISOString() : value,
  ])
  return Object.fromEntries(entries) as Out
}

/** SQL for a time within JSON, as `toISOString` writes it. */
export const isoTime = (time: string) => `to_char(${time} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** What one statement of the retention deletes. */
export interface AgedBatch {
  readonly olderThanDays: number
  /** The most rows that it reads or deletes. */
  readonly batchSize: number
}

/**
 * Deletes at most `limit` rows of a table that meet a condition, whose parameters begin at $2, and skips those that
 * another process has locked. Resolves to how many. ARRAY(…) is evaluated once: with IN, PostgreSQL may evaluate the
 * batch again for each row, and delete more than the limit.
 */
export async function deleteRows(
  { pool }: Connection,
  { table, key = 'id', where }: { readonly table: string; readonly key?: string; readonly where: string },
  limit: number,
  ...values: unknown[]
): Promise<number> {
  const { rowCount } = await pool.query(
    `DELETE FROM ${table} WHERE ${key} = ANY (ARRAY(
       SELECT ${key} FROM ${table} WHERE ${where} LIMIT $1 FOR UPDATE SKIP LOCKED))`,
    [limit, ...values],
  )
  return rowCount ?? 0
}

/** The parameters of a statement for many rows: a list of each of these values. */
export function listsOf<Row, Name extends keyof Row>(rows: readonly Row[], ...names: readonly Name[]): Row[Name][][] {
  return names.map((name) => rows.map((row) => row[name]))
}

/** Runs a query whose columns are named as in the contract. Resolves to its rows, with their times as texts. */
export async function queryRows<Out extends object>(
  db: Connection,
  query: string | { readonly name: string; readonly text: string },
  values: unknown[],
): Promise<Out[]> {
  const { rows } = await db.pool.query<RowOf<Out>>(
    typeof query === 'string' ? { text: query, values } : { ...query, values },
  )
  return rows.map((row) => datesToIso<Out>(row))
}
