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

/**
 * Rows of the journals of runs, and pieces of 2 kB of their large values, that one batch deletes; a single run may have
 * more.
 */
export const MAX_STEP_ROWS = 20_000

/** SQL that counts these rows and pieces, of the journal for which a condition follows. */
export const COUNT_STEP_ROWS = `SELECT count(*) + coalesce(
    sum((pg_column_size(data) + coalesce(pg_column_size(earlier_steps), 0)) / 2000), 0
  ) AS step_rows FROM run_steps`

/**
 * Deletes at most `limit` runs that meet a condition, as `deleteRows` does, and as many as the rows of their journals
 * allow, which are deleted with them. Resolves to how many.
 */
export async function deleteRuns(
  { pool }: Connection,
  where: string,
  limit: number,
  ...values: unknown[]
): Promise<number> {
  const { rowCount } = await pool.query(
    `DELETE FROM starts WHERE ctid = ANY (ARRAY(
       SELECT place FROM (
         SELECT place, row_number() OVER in_order AS position, sum(step_rows) OVER in_order AS step_rows
         FROM (SELECT ctid AS place, id FROM starts WHERE ${where} LIMIT $1 FOR UPDATE SKIP LOCKED) AS run
         CROSS JOIN LATERAL (${COUNT_STEP_ROWS} WHERE run_id = run.id) AS journal
         WINDOW in_order AS (ORDER BY id)
       ) AS weighed WHERE step_rows <= ${MAX_STEP_ROWS} OR position = 1))`,
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
