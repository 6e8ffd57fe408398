import { waitUntil } from '@workflow-service/dev-servers'
import type { Pool } from 'pg'

/** Waits until a statement of this database with the text in its first 1,024 characters waits for a lock. */
export async function untilLocked(pool: Pick<Pool, 'query'>, text = ''): Promise<void> {
  await waitUntil(async () => {
    const { rows } = await pool.query(
      `SELECT FROM pg_stat_activity
       WHERE datname = current_database() AND wait_event_type = 'Lock' AND position($1 IN query) > 0`,
      [text],
    )
    return rows.length > 0
  })
}
