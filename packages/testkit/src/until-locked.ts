import { waitUntil } from '@workflow-service/dev-servers'
import type { Pool } from 'pg'

/** Counts the statements of this database with the text in their first 1,024 characters that wait for a lock. */
export async function countLocked(pool: Pick<Pool, 'query'>, text = ''): Promise<number> {
  const { rows } = await pool.query(
    `SELECT FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock' AND position($1 IN query) > 0`,
    [text],
  )
  return rows.length
}

/** Waits until such a statement waits for a lock. */
export async function untilLocked(pool: Pick<Pool, 'query'>, text = ''): Promise<void> {
  await waitUntil(async () => (await countLocked(pool, text)) > 0)
}
