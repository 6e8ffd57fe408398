import { type Db, type NamedStatement, NIL_UUID, runStatement, type TimePosition } from '../connection/index.ts'
import { firstIdAt } from '../organizations/index.ts'
import { COUNTED_UNTIL, HOURS_COUNTED_AGAIN } from './usage.ts'

const DAY_MS = 86_400_000

/** Which rows of an organization to look at. */
export interface RetentionBatch {
  readonly organizationId: string
  readonly olderThanDays: number
  /** Rows that are read at most. */
  readonly batchSize: number
  /** Where the batch before ended; undefined for the oldest rows. */
  readonly after?: TimePosition | undefined
}

/** What a batch deleted, and after which row the next one begins; undefined if no older row is left. */
export interface RetentionResult {
  readonly deleted: number
  readonly next: TimePosition | undefined
}

/** Rows of the journal, and pieces of 2 kB of their large values, that one batch deletes; a single run may have more. */
const MAX_STEP_ROWS = 20_000

/** The time before which rows are deleted: the age in days, `$1`, and at most what the usage has counted. */
const RETENTION_LIMIT = `least(now() - make_interval(days => $1), ${COUNTED_UNTIL})`

/** SQL for the condition that a row of this time is in no hour that may be counted again. */
function isCounted(time: string): string {
  return `date_trunc('hour', ${time}) <> ALL (ARRAY${HOURS_COUNTED_AGAIN})`
}

/**
 * The CTE `batch` has the oldest runs after a position, as many as `$5` and as the rows of their journals allow; `is_last`: it has all
 * that are left. PostgreSQL stores a large value in pieces of about 2,000 bytes.
 */
const oldRuns = (limit: string, after: string) => `
    read AS MATERIALIZED (
      SELECT id, created_at, status IN ('succeeded', 'failed') AND finished_at < ${limit} AS has_ended
      FROM starts
      WHERE organization_id = $2 AND created_at < ${limit} AND (created_at, id) > ${after}
      ORDER BY created_at, id LIMIT $5
    ),
    weighed AS MATERIALIZED (
      SELECT read.*, row_number() OVER in_order AS position, sum(step_rows) OVER in_order AS step_rows
      FROM read CROSS JOIN LATERAL (
        SELECT count(*) + coalesce(sum(pg_column_size(data) / 2000), 0) AS step_rows FROM run_steps WHERE run_id = read.id
      ) AS journal
      WINDOW in_order AS (ORDER BY created_at, id)
    ),
    batch AS MATERIALIZED (
      SELECT id, created_at, has_ended, position FROM weighed WHERE step_rows <= ${MAX_STEP_ROWS} OR position = 1
    )`

const LAST_OF_BATCH = `
    SELECT created_at AS "createdAt", id, (SELECT count(*)::integer FROM deleted) AS deleted,
      position < $5 AND position = (SELECT count(*) FROM read) AS "isLast"
    FROM batch ORDER BY position DESC LIMIT 1`

// ARRAY(…) is evaluated once. Scalar subqueries find their rows by key; for NOT EXISTS, PostgreSQL may read the whole table.
const DELETE_OLD_RUNS: NamedStatement = {
  name: 'delete-old-runs',
  text: `
    WITH ${oldRuns(RETENTION_LIMIT, '($3, $4)')},
    deleted AS (
      DELETE FROM starts WHERE id = ANY (ARRAY(
        SELECT id FROM starts WHERE id = ANY (ARRAY(
          SELECT id FROM batch
          WHERE has_ended AND ${isCounted('created_at')}
            AND (SELECT true FROM deliveries WHERE run_id = batch.id AND outcome IN ('unknown', 'in_flight') LIMIT 1) IS NULL
            AND (
              SELECT true FROM idempotency_keys
              WHERE start_id = batch.id AND created_at > now() - interval '24 hours' LIMIT 1
            ) IS NULL
        ))
        FOR UPDATE SKIP LOCKED
      ))
      RETURNING id
    )
    ${LAST_OF_BATCH}`,
}

/**
 * Deletes runs that ended before the age, with their journals and approvals. Keeps a run of which a delivery in the log is unknown or in
 * flight, a start whose Idempotency-Key is still answered (contract README, "Retention"), and what the usage has not counted yet.
 * Safe when several processes do it at once.
 */
export async function deleteOldRuns(db: Db, batch: RetentionBatch): Promise<RetentionResult> {
  return await deleteBatch(db, DELETE_OLD_RUNS, batch)
}

/** Up to the first hour that may be counted again: the deletion of journals does not return to the runs that it passed. */
const JOURNAL_LIMIT = `least(${RETENTION_LIMIT}, (SELECT min(hour) FROM ${HOURS_COUNTED_AGAIN} AS counted_again))`

// The row of retention_progress is locked, so that two processes do not delete the same journals: the second one finds nothing.
const DELETE_OLD_JOURNALS: NamedStatement = {
  name: 'delete-old-journals',
  text: `
    WITH progress AS MATERIALIZED (
      SELECT created_at, run_id FROM retention_progress WHERE organization_id = $2
        AND (created_at, run_id) >= ($3, $4) FOR UPDATE SKIP LOCKED
    ),
    ${oldRuns(JOURNAL_LIMIT, '(SELECT created_at, run_id FROM progress)')},
    deleted AS (
      DELETE FROM run_steps WHERE run_id = ANY (ARRAY(SELECT id FROM batch WHERE has_ended)) RETURNING run_id
    ),
    deleted_prompts AS (
      DELETE FROM run_prompts WHERE run_id = ANY (ARRAY(SELECT id FROM batch WHERE has_ended))
    ),
    advanced AS (
      UPDATE retention_progress SET (created_at, run_id) = (SELECT created_at, id FROM batch ORDER BY position DESC LIMIT 1)
      WHERE organization_id = $2 AND (SELECT true FROM batch LIMIT 1)
    )
    ${LAST_OF_BATCH}`,
}

/**
 * Deletes the journals of runs that ended before the age, and remembers how far it came: no journal is looked for twice. That of a run
 * which had not ended when its turn came is deleted with the run. Safe when several processes do it at once.
 */
export async function deleteOldJournals(db: Db, batch: RetentionBatch): Promise<RetentionResult> {
  // Looks first: with ON CONFLICT alone it waits for another process that is updating the row.
  await db.pool.query(
    `INSERT INTO retention_progress (organization_id, created_at, run_id)
     SELECT id, '-infinity', '${NIL_UUID}' FROM organizations
     WHERE id = $1 AND (SELECT true FROM retention_progress WHERE organization_id = $1) IS NULL ON CONFLICT DO NOTHING`,
    [batch.organizationId],
  )
  return await deleteBatch(db, DELETE_OLD_JOURNALS, batch)
}

// `locked` compares columns of the session's row, which PostgreSQL reads again under the lock: a start that was recorded since the
// snapshot, which does not show it, has changed last_used_at.
const DELETE_OLD_SESSIONS: NamedStatement = {
  name: 'delete-old-sessions',
  text: `
    WITH read AS MATERIALIZED (
      SELECT id, created_at FROM sessions
      WHERE organization_id = $2 AND created_at < now() - make_interval(days => $1) AND (created_at, id) > ($3, $4)
      ORDER BY created_at, id LIMIT $5
    ),
    batch AS MATERIALIZED (
      SELECT read.*, row_number() OVER (ORDER BY created_at, id) AS position FROM read
    ),
    locked AS MATERIALIZED (
      SELECT id FROM sessions
      WHERE id = ANY (ARRAY(
          SELECT id FROM batch WHERE (SELECT true FROM starts WHERE session_id = batch.id LIMIT 1) IS NULL
        ))
        AND last_used_at < now() - make_interval(days => $1)
        AND last_finished_number = last_start_number AND lease_owner IS NULL
      FOR UPDATE SKIP LOCKED
    ),
    deleted AS (
      DELETE FROM sessions WHERE id = ANY (ARRAY(SELECT id FROM locked)) RETURNING id
    )
    ${LAST_OF_BATCH}`,
}

/**
 * Deletes sessions whose last start is older than the age and whose runs are deleted, open or closed. Safe when several processes do it
 * at once, and against starts that continue the session.
 */
export async function deleteOldSessions(db: Db, batch: RetentionBatch): Promise<RetentionResult> {
  return await deleteBatch(db, DELETE_OLD_SESSIONS, batch)
}

async function deleteBatch(
  db: Db,
  statement: NamedStatement,
  { organizationId, olderThanDays, batchSize, after }: RetentionBatch,
): Promise<RetentionResult> {
  const { rows } = await runStatement<TimePosition & { deleted: number; isLast: boolean }>(db, statement, [
    olderThanDays,
    organizationId,
    after?.createdAt ?? '-infinity',
    after?.id ?? NIL_UUID,
    batchSize,
  ])
  const [last] = rows
  if (!last) return { deleted: 0, next: undefined }
  const { deleted, isLast, createdAt, id } = last
  return { deleted, next: isLast ? undefined : { createdAt, id } }
}

// Ids are made a little before or after `at`; the id only keeps the search short.
const DELETE_OLD_AUDIT_EVENTS: NamedStatement = {
  name: 'delete-old-audit-events',
  text: `
    DELETE FROM audit_events WHERE id = ANY (ARRAY(
      SELECT id FROM audit_events WHERE id < $1 AND at < now() - make_interval(days => $2)
      ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED
    ))`,
}

/** Deletes at most `batchSize` entries of the audit log that are older than the age. Resolves to how many. */
export async function deleteOldAuditEvents(
  db: Db,
  { olderThanDays, batchSize }: { olderThanDays: number; batchSize: number },
): Promise<number> {
  const firstId = firstIdAt(Date.now() - olderThanDays * DAY_MS + 60_000)
  const { rowCount } = await runStatement(db, DELETE_OLD_AUDIT_EVENTS, [firstId, olderThanDays, batchSize])
  return rowCount ?? 0
}

/** The next 500 organizations after this id, in the order of their ids. */
export async function listOrganizationIds(db: Db, after: string = NIL_UUID): Promise<string[]> {
  const { rows } = await db.pool.query<{ id: string }>(
    'SELECT id FROM organizations WHERE id > $1 ORDER BY id LIMIT 500',
    [after],
  )
  return rows.map(({ id }) => id)
}

// Only whole days, for the index deliveries_day: with the exact time, a batch that finds few entries reads those of a whole day. ARRAY(…)
// as above. A scalar subquery finds each start by its key; for NOT EXISTS, a plan that was made on an empty table reads all starts.
const DELETE_OLD_DELIVERIES: NamedStatement = {
  name: 'delete-old-deliveries',
  text: `
    DELETE FROM deliveries WHERE id = ANY (ARRAY(
      SELECT id FROM deliveries
      WHERE (created_at AT TIME ZONE 'UTC')::date < (${RETENTION_LIMIT} AT TIME ZONE 'UTC')::date
        AND ${isCounted('created_at')}
        AND outcome <> 'in_flight'
        AND coalesce((SELECT status IN ('succeeded', 'failed') FROM starts WHERE starts.id = deliveries.run_id), true)
      LIMIT $2 FOR UPDATE SKIP LOCKED
    ))`,
}

/**
 * Deletes at most `batchSize` entries of the log that were recorded on a day (UTC) before the age, and that the usage has counted. Resolves
 * to how many: fewer than a batch means that none are left. Keeps the deliveries of a run that has not ended: when such a run is
 * resumed, however late, a payload whose delivery were gone would be sent again. Safe when several processes do it at once.
 */
export async function deleteOldDeliveries(
  db: Db,
  options: { olderThanDays: number; batchSize: number },
): Promise<number> {
  const { rowCount } = await runStatement(db, DELETE_OLD_DELIVERIES, [options.olderThanDays, options.batchSize])
  return rowCount ?? 0
}

// ARRAY(…) is evaluated once. With IN, PostgreSQL may evaluate the batch again for each row, and delete more than the limit.
const DELETE_OLD_IDEMPOTENCY_KEYS: NamedStatement = {
  name: 'delete-old-idempotency-keys',
  text: `
    DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM idempotency_keys
      WHERE created_at <= now() - interval '24 hours'
      ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED
    ))`,
}

/** Deletes at most `limit` Idempotency-Keys that are older than 24 hours. Resolves to how many. */
export async function deleteOldIdempotencyKeys(db: Db, limit: number): Promise<number> {
  const { rowCount } = await runStatement(db, DELETE_OLD_IDEMPOTENCY_KEYS, [limit])
  return rowCount ?? 0
}
