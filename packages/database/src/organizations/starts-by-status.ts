import type { RunStatus } from '@workflow-service/contract'

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
export function startsWith(status: RunStatus | undefined, ofSessions?: string): string {
  return status === 'queued' || status === 'running' || status === 'waiting' ? unfinishedStarts(ofSessions) : 'starts'
}
