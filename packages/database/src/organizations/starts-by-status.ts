import type { RunStatus } from '@workflow-service/contract'

/**
 * SQL for the condition that a start has this status. No index has the status itself, which each run changes: the
 * indexes of unfinished, failed and cancelled starts go by columns that most runs change once or never.
 */
export function hasStatus(status: RunStatus): string {
  return `status = '${status}'${INDEXED[status]}`
}

/** As in the index starts_unfinished (migration 027). */
const UNFINISHED = ` AND coalesce(finished_at, 'infinity') = 'infinity'`
const INDEXED: Readonly<Record<RunStatus, string>> = {
  queued: UNFINISHED,
  running: UNFINISHED,
  waiting: UNFINISHED,
  succeeded: '',
  failed: ' AND error IS NOT NULL',
  cancelled: ' AND cancelled_by_name IS NOT NULL',
}
