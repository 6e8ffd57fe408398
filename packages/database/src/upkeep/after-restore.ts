import type { AutoRunFrequency, ScheduleTiming } from '@workflow-service/contract'
import type { Db } from '../connection/index.ts'
import { UNKNOWN_REASON } from '../deliveries/index.ts'
import { nextAutoRunAt } from '../workflows/index.ts'

/** The error of a run that had not ended at the moment to which the database was restored (contract README, "Runs"). */
const INTERRUPTED_BY_RESTORE =
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
 * jobs of resends stop, and due schedules advance without a run. Call it while no service runs. Works in batches and is
 * safe to repeat.
 */
export async function endWorkAfterRestore(db: Db) {
  const resendJobs = await db.pool.query(
    `UPDATE resend_jobs SET status = 'stopped', finished_at = now() WHERE status = 'running'`,
  )
  const deliveries = await db.pool.query(
    `UPDATE deliveries SET outcome = 'unknown', reason = $1, finished_at = now() WHERE outcome = 'in_flight'`,
    [UNKNOWN_REASON],
  )
  let runs = 0
  for (let batch = await endRuns(db); batch.sessions > 0; batch = await endRuns(db)) runs += batch.runs
  const schedules = await skipDueSchedules(db)
  return { runs, deliveries: deliveries.rowCount ?? 0, schedules, resendJobs: resendJobs.rowCount ?? 0 }
}

/** Ends the runs of some sessions that have work. Resolves to how many. */
async function endRuns(db: Db): Promise<{ sessions: number; runs: number }> {
  const { rows } = await db.pool.query<{ sessions: number; runs: number }>(
    `WITH session AS MATERIALIZED (
       SELECT id FROM sessions WHERE last_finished_number < last_start_number LIMIT $1 FOR NO KEY UPDATE
     ),
     run AS (
       UPDATE starts SET status = 'failed', error = $2, finished_at = now(), not_succeeded_at = now()
       WHERE session_id IN (SELECT id FROM session) AND status IN ('queued', 'running', 'waiting') RETURNING id
     ),
     approval AS (
       UPDATE approvals SET status = 'expired', decided_at = now()
       WHERE run_id IN (SELECT id FROM run) AND status = 'waiting'
     ),
     ended AS (
       UPDATE sessions SET last_finished_number = last_start_number, waiting_since = NULL, lease_owner = NULL,
         lease_until = NULL, lease_epoch = lease_epoch + 1
       WHERE id IN (SELECT id FROM session) RETURNING id
     )
     SELECT (SELECT count(*)::integer FROM ended) AS sessions, (SELECT count(*)::integer FROM run) AS runs`,
    [SESSIONS_PER_BATCH, INTERRUPTED_BY_RESTORE],
  )
  return rows[0]!
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
