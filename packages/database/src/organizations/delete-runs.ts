import type { Connection } from '../connection/index.ts'

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
