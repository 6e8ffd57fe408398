import type { RunStatus } from '@workflow-service/contract'
import type { Queryable } from '../connection/index.ts'

/**
 * SQL for the condition that a start has this status. No index has the status itself, which each run changes: the
 * indexes of failed and cancelled starts go by columns that most runs never change.
 */
export function hasStatus(status: RunStatus): string {
  return `status = '${status}'${INDEXED[status] ?? ''}`
}

const INDEXED: Partial<Record<RunStatus, string>> = {
  failed: ' AND error IS NOT NULL',
  cancelled: ' AND cancelled_by_name IS NOT NULL',
}

/** Failed runs that need attention, as in their index: of those that failed because of a delivery, it is shown. */
export const NEEDS_ATTENTION = `error IS NOT NULL AND handled_at IS NULL
  AND error !~ '^delivery_(rejected|timed_out|unreachable|refused|invalid|unknown|declined):'`
/** When a `start` failed; of one that failed before this was recorded, when it was accepted. */
export const FAILED_AT = 'coalesce(start.not_succeeded_at, start.created_at)'
/** That a `start` which failed did so as lately as the overview shows. */
export const FAILED_RECENTLY = `${FAILED_AT} > now() - interval '7 days'`
/** The code of an error of a `start`; empty without one. */
export const ERROR_CODE = String.raw`coalesce(substring(start.error FROM '^(\w+): '), '')`

/**
 * The starts of the organization $1 that have not ended, in place of the table: those of the sessions that have work,
 * or of those that also meet a condition. A condition outside reads the others, too. OFFSET 0: PostgreSQL may begin
 * with all starts otherwise, and look for the session of each.
 */
export function unfinishedStarts(ofSessions = 'true'): string {
  return `(
    SELECT unfinished.* FROM sessions CROSS JOIN LATERAL (
      SELECT * FROM starts
      WHERE session_id = sessions.id AND number > sessions.last_finished_number AND finished_at IS NULL OFFSET 0
    ) AS unfinished
    WHERE sessions.organization_id = $1 AND last_finished_number < last_start_number AND ${ofSessions}
  ) AS starts`
}

/** What to read starts of this status from, for a statement whose $1 is the organization. */
export function startsOfStatus(status: RunStatus | undefined, ofSessions?: string): string {
  if (status === 'queued') return unfinishedStarts(ofSessions)
  if (status === 'running') return RUNNING
  return status === 'waiting' ? WAITING : 'starts'
}

// Twice OFFSET 0: PostgreSQL may read all starts otherwise.
const RUNNING = `(
    SELECT running.* FROM (
      SELECT id, last_finished_number FROM sessions
      WHERE organization_id = $1 AND last_finished_number < last_start_number AND lease_owner IS NOT NULL OFFSET 0
    ) AS leased CROSS JOIN LATERAL (
      SELECT * FROM starts WHERE session_id = leased.id AND number = leased.last_finished_number + 1 OFFSET 0
    ) AS running
  ) AS starts`

const WAITING = `(
    SELECT waiting.* FROM (
      SELECT DISTINCT run_id FROM approvals WHERE organization_id = $1 AND status = 'waiting'
    ) AS approval CROSS JOIN LATERAL (SELECT * FROM starts WHERE id = approval.run_id OFFSET 0) AS waiting
  ) AS starts`

/** Unfinished starts up to which a list reads all. */
export const LONG_QUEUE = 5_000
/** Up to which a change reads all; from then on it reads the workflow's own starts, most of which may have ended. */
export const VERY_LONG_QUEUE = 20_000

/** Whether an organization has so many unfinished starts. Those that were cancelled before their turn count, too. */
export async function hasQueueOf(db: Queryable, organizationId: string, length: number): Promise<boolean> {
  const { rows } = await db.query<{ isLong: boolean }>(
    `SELECT sum(last_start_number - last_finished_number) >= ${length} AS "isLong" FROM (
       SELECT last_start_number, last_finished_number FROM sessions
       WHERE organization_id = $1 AND last_finished_number < last_start_number ORDER BY waiting_since LIMIT ${length}
     ) AS session`,
    [organizationId],
  )
  return rows[0]?.isLong ?? false
}
