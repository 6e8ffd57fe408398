import type { AutoRunFrequency, ScheduleTiming } from '@workflow-service/contract'
import { type Db, inTransaction } from '../connection/index.ts'
import { UNKNOWN_REASON } from '../deliveries/index.ts'
import { nextAutoRunAt } from '../workflows/index.ts'

/** The error of a run that had not ended at the moment to which the database was restored (contract README, "Runs"). */
export const INTERRUPTED_BY_RESTORE =
  'interrupted_by_restore: The database was restored to a moment before the end of this run. Its payloads may have arrived or not; they are not sent again.'

const SESSIONS_PER_BATCH = 500

/** The names under which services are connected to the database, sorted. */
export async function listConnectedServices(db: Db): Promise<readonly string[]> {
  const { rows } = await db.pool.query<{ name: string }>(
    `SELECT DISTINCT application_name AS name FROM pg_stat_activity
     WHERE datname = current_database() AND application_name IN ('gateway', 'runner', 'dispatcher', 'app')
     ORDER BY 1`,
  )
  return rows.map(({ name }) => name)
}

/**
 * Ends everything that the service may have done after the moment to which the database was restored, so that nothing
 * of it is sent again: deliveries in flight become `unknown`, runs that had not ended fail, approvals that wait expire,
 * and due schedules advance without a run. Call it while no service runs. Works in batches and is safe to repeat.
 */
export async function endWorkAfterRestore(db: Db) {
  const ended = {
    /** Runs that had not ended. */
    runs: 0,
    /** Deliveries that were in flight. */
    deliveries: 0,
    /** Schedules that were due. */
    schedules: 0,
  }
  const { rowCount } = await db.pool.query(
    `UPDATE deliveries SET outcome = 'unknown', reason = $1, finished_at = now() WHERE outcome = 'in_flight'`,
    [UNKNOWN_REASON],
  )
  ended.deliveries = rowCount ?? 0
  for (;;) {
    const batch = await endRuns(db)
    if (batch === undefined) break
    ended.runs += batch
  }
  ended.schedules = await skipDueSchedules(db)
  return ended
}

/** Ends the runs of some sessions. Resolves to their number; undefined when no session has work. */
async function endRuns(db: Db): Promise<number | undefined> {
  return await inTransaction(db, async (client) => {
    const { rows: sessions } = await client.query<{ id: string }>(
      `SELECT id FROM sessions WHERE last_finished_number < last_start_number LIMIT $1 FOR NO KEY UPDATE`,
      [SESSIONS_PER_BATCH],
    )
    if (sessions.length === 0) return undefined
    const ids = sessions.map(({ id }) => id)
    const { rowCount, rows } = await client.query<{ id: string }>(
      `UPDATE starts SET status = 'failed', error = $2, finished_at = now(), not_succeeded_at = now()
       WHERE session_id = ANY ($1) AND status IN ('queued', 'running', 'waiting') RETURNING id`,
      [ids, INTERRUPTED_BY_RESTORE],
    )
    await client.query(
      `UPDATE approvals SET status = 'expired', decided_at = now() WHERE run_id = ANY ($1) AND status = 'waiting'`,
      [rows.map(({ id }) => id)],
    )
    await client.query(
      `UPDATE sessions SET last_finished_number = last_start_number, waiting_since = NULL, lease_owner = NULL,
         lease_until = NULL, lease_epoch = lease_epoch + 1
       WHERE id = ANY ($1)`,
      [ids],
    )
    return rowCount ?? 0
  })
}

/** A due time after the restored moment may have been started before the restore. */
async function skipDueSchedules(db: Db): Promise<number> {
  const { rows } = await db.pool.query<{
    id: string
    frequency: AutoRunFrequency
    timing: ScheduleTiming | null
    anchorAt: Date
    now: Date
  }>(
    `SELECT id, auto_run_frequency AS frequency, auto_run_timing AS timing, auto_run_anchor_at AS "anchorAt", now()
     FROM workflows
     WHERE auto_run_frequency IN ('hourly', 'daily', 'weekly', 'monthly') AND auto_run_next_at <= now()`,
  )
  await db.pool.query(
    `UPDATE workflows SET auto_run_next_at = due.next_at
     FROM unnest($1::uuid[], $2::timestamptz[]) AS due (id, next_at) WHERE workflows.id = due.id`,
    [rows.map(({ id }) => id), rows.map((due) => nextAutoRunAt(due, due.now))],
  )
  return rows.length
}
