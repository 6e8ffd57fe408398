import { APPROVAL_DAYS } from '@workflow-service/contract'
import {
  type AgedBatch,
  column,
  type Db,
  deleteRows,
  NIL_UUID,
  type paging,
  runStatement,
  sql,
  statement,
} from '../connection/index.ts'
import { COUNT_STEP_ROWS, firstIdAt, MAX_STEP_ROWS } from '../organizations/index.ts'
import { COUNTED_UNTIL, FIRST_UNFINISHED_HOUR, HOURS_COUNTED_AGAIN } from './usage-roll-up.ts'

const DAY_MS = 86_400_000

/** Which rows of an organization to look at. */
export interface RetentionBatch extends AgedBatch {
  readonly organizationId: string
  /** Where the batch before ended; undefined for the oldest rows. */
  readonly after?: paging.TimePosition | undefined
}

/** What a batch deleted, and after which row the next one begins; undefined if no older row is left. */
export interface RetentionResult {
  readonly deleted: number
  readonly next: paging.TimePosition | undefined
}

/** SQL for the time before which rows are deleted: the age in days, and at most what the usage has counted. */
const limitOf = (days: '$1' | '$2') => `least(now() - make_interval(days => ${days}), ${COUNTED_UNTIL})`

/** SQL for the condition that a row is in no hour that may be counted again. */
const IS_COUNTED = `date_trunc('hour', created_at) <> ALL (ARRAY${HOURS_COUNTED_AGAIN})`

const oldRuns = (limit: string, after: string, isDue = 'true') =>
  sql('upkeep/old-runs', { LIMIT: limit, AFTER: after, IS_DUE: isDue, COUNT_STEP_ROWS, MAX_STEP_ROWS })

const LAST_OF_BATCH = sql('upkeep/last-of-batch')
const BATCH = { createdAt: column.timestamptz, id: column.uuid, deleted: column.integer, isLast: column.boolean }

/** Declares a statement that deletes a batch of the rows of an organization, and returns the function that runs it. */
function deletionOf(file: `upkeep/${string}`, inserts: Record<string, string>) {
  const deletion = statement(file, BATCH, inserts)
  return async (
    db: Db,
    { organizationId, olderThanDays, batchSize, after }: RetentionBatch,
  ): Promise<RetentionResult> => {
    const position = [after?.createdAt ?? '-infinity', after?.id ?? NIL_UUID]
    const { rows } = await runStatement(db, deletion, [olderThanDays, organizationId, ...position, batchSize])
    const [last] = rows
    if (!last) return { deleted: 0, next: undefined }
    const { deleted, isLast, createdAt, id } = last
    return { deleted, next: isLast ? undefined : { createdAt, id } }
  }
}

/**
 * Deletes runs that ended before the age, with their journals and approvals. Keeps a run of which a delivery in the log
 * is unknown or in flight, a start whose Idempotency-Key is still answered (contract README, "Retention"), and what the
 * usage has not counted yet. Safe when several processes do it at once.
 */
export const deleteOldRuns = deletionOf('upkeep/delete-old-runs', {
  OLD_RUNS: oldRuns(limitOf('$1'), '($3, $4)'),
  IS_COUNTED,
  LAST_OF_BATCH,
})

/**
 * Up to the first hour that is not finished: the deletion of journals does not return to the runs that it passed.
 */
const JOURNAL_LIMIT = `least(${limitOf('$1')}, ${FIRST_UNFINISHED_HOUR})`

/** Days for which journals are kept for a run before them: longer than one whose payload waits for an approval. */
const HELD_DAYS = APPROVAL_DAYS + 1

/** SQL for the condition that no run of the batch up to this one may still end, or has ended too lately. */
const IS_JOURNAL_DUE = `position < coalesce((
    SELECT min(position) FROM weighed
    WHERE NOT has_ended AND coalesce(finished_at, now()) < created_at + interval '${HELD_DAYS} days'
  ), position + 1)`

const deleteJournals = deletionOf('upkeep/delete-old-journals', {
  OLD_RUNS: oldRuns(JOURNAL_LIMIT, '(SELECT created_at, run_id FROM progress)', IS_JOURNAL_DUE),
  LAST_OF_BATCH,
})

/**
 * Deletes the journals of runs that ended before the age, and remembers how far it came: no journal is looked for
 * twice. It waits at a run that takes at most 8 days until that has ended for so long. The journal of a run that takes
 * longer is deleted with the run. Safe when several processes do it at once.
 */
export async function deleteOldJournals(db: Db, batch: RetentionBatch): Promise<RetentionResult> {
  // Looks first: with ON CONFLICT alone it waits for another process that is updating the row.
  await db.pool.query(
    `INSERT INTO retention_progress (organization_id, created_at, run_id)
     SELECT id, '-infinity', '${NIL_UUID}' FROM organizations
     WHERE id = $1 AND (SELECT true FROM retention_progress WHERE organization_id = $1) IS NULL ON CONFLICT DO NOTHING`,
    [batch.organizationId],
  )
  return await deleteJournals(db, batch)
}

/**
 * Deletes sessions whose last start is older than the age and whose runs are deleted, open or closed. Safe when several
 * processes do it at once, and against starts that continue the session.
 */
export const deleteOldSessions = deletionOf('upkeep/delete-old-sessions', { LAST_OF_BATCH })

/** Deletes at most `batchSize` entries of the audit log that are older than the age. Resolves to how many. */
export async function deleteOldAuditEvents(db: Db, { olderThanDays, batchSize }: AgedBatch): Promise<number> {
  // Ids are made a little after `at`; the id only keeps the search short.
  const firstId = firstIdAt(Date.now() - olderThanDays * DAY_MS + 60_000)
  const where = 'id < $2 AND at < now() - make_interval(days => $3) ORDER BY id'
  return await deleteRows(db, { table: 'audit_events', where }, batchSize, firstId, olderThanDays)
}

/** Deletes at most `batchSize` rows of what models have cost that are older than the age. Resolves to how many. */
export async function deleteOldSpending(db: Db, { olderThanDays, batchSize }: AgedBatch): Promise<number> {
  const where = `period < (now() AT TIME ZONE 'UTC')::date - $2::integer`
  return await deleteRows(db, { table: 'model_spending', key: 'ctid', where }, batchSize, olderThanDays)
}

/**
 * Deletes at most `batchSize` entries of the log that were recorded on a day (UTC) before the age, and that the usage
 * has counted. Resolves to how many: fewer than a batch means that none are left. Keeps the deliveries of a run that
 * has not ended: when such a run is resumed, however late, a payload whose delivery were gone would be sent again. Safe
 * when several processes do it at once.
 */
export async function deleteOldDeliveries(db: Db, { olderThanDays, batchSize }: AgedBatch): Promise<number> {
  // Whole days, for the index deliveries_day: with the exact time, a batch that finds few entries reads those of a
  // whole day. A scalar subquery finds each start by its key: for NOT EXISTS, PostgreSQL may read all starts.
  const where = `(created_at AT TIME ZONE 'UTC')::date < (${limitOf('$2')} AT TIME ZONE 'UTC')::date
    AND ${IS_COUNTED} AND outcome <> 'in_flight'
    AND coalesce((SELECT finished_at IS NOT NULL FROM starts WHERE starts.id = deliveries.run_id), true)`
  return await deleteRows(db, { table: 'deliveries', where }, batchSize, olderThanDays)
}

/** Deletes at most `limit` Idempotency-Keys that are older than 24 hours. Resolves to how many. */
export async function deleteOldIdempotencyKeys(db: Db, limit: number): Promise<number> {
  const where = `created_at <= now() - interval '24 hours' ORDER BY created_at`
  return await deleteRows(db, { table: 'idempotency_keys', key: 'ctid', where }, limit)
}
