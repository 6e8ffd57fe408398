import type { ResendJobOut, ResendPreviewOut } from '@workflow-service/contract'
import {
  type AgedBatch,
  type Database,
  type Db,
  deleteRows,
  inTransaction,
  listsOf,
  newId,
  type paging,
  type Queryable,
} from '../connection/index.ts'
import { type AuditedBy, queryVisible, recordAuditEvent, type Viewer } from '../organizations/index.ts'
import { NEEDS_APPROVAL } from './deliveries.ts'
import { type DeliveryListQuery, findVisibleIds, listVisibleIds } from './delivery-reads.ts'

/** The most payloads of one job. */
export const MAX_RESENDS = 5_000
const IDS_PER_READ = 500
/** What was handled or cannot be sent is read, too: without a bound, one request would read a log of millions. */
const MAX_READS = 100
const MAX_JOBS_LISTED = 50
/** A resend of a resend is followed so far. */
const MAX_DEPTH = 100

/** Which payloads to send again: these deliveries, or all that match. */
export type ResendFilter = { readonly ids: readonly string[] } | Omit<DeliveryListQuery, 'limit' | 'after' | 'kind'>

/** One payload to send again, by the id of the newest delivery. */
interface Resendable {
  /** Its first delivery. */
  readonly root: string
  readonly id: string
  readonly sourceId: string
  readonly sourceName: string
  readonly needsApproval: boolean
}

// Each payload once, by its newest delivery among those chosen: a resend has the payload of the first delivery. One of
// which a resend was accepted is left out, unless the chosen delivery was accepted itself, and one that a running job
// has not sent yet, or of which a resend is under way: it may be accepted; or ended after $3, when it may have been
// left out. LATERAL with OFFSET reads the index, and no list is joined with another: that compares each entry with
// each.
const RESENDABLE = `
  WITH RECURSIVE up AS (
    SELECT id, source_id, outcome, created_at, id AS earlier, resend_of AS parent, 0 AS depth FROM deliveries
    WHERE organization_id = $1 AND id = ANY ($2::uuid[]) AND kind = 'payload' AND outcome <> 'in_flight'
      AND ($3::timestamptz IS NULL OR coalesce(finished_at, created_at) <= $3)
    UNION ALL
    SELECT up.id, up.source_id, up.outcome, up.created_at, earlier.id, earlier.resend_of, depth + 1
    FROM up CROSS JOIN LATERAL (SELECT id, resend_of FROM deliveries WHERE id = up.parent OFFSET 0) AS earlier
    WHERE depth < ${MAX_DEPTH}
  ),
  rooted AS (
    SELECT DISTINCT ON (id) id, source_id, outcome, created_at, earlier AS root FROM up ORDER BY id, depth DESC
  ),
  down AS (
    SELECT DISTINCT root, root AS id, NULL::text AS outcome, NULL::timestamptz AS ended_at, 0 AS depth FROM rooted
    UNION ALL
    SELECT down.root, resend.id, resend.outcome, resend.ended_at, depth + 1
    FROM down CROSS JOIN LATERAL (
      SELECT id, outcome, coalesce(finished_at, created_at) AS ended_at FROM deliveries
      WHERE resend_of = down.id OFFSET 0
    ) AS resend
    WHERE depth < ${MAX_DEPTH}
  ),
  pending AS (
    SELECT delivery_id FROM resend_jobs, unnest(delivery_ids) WITH ORDINALITY AS item (delivery_id, position)
    WHERE organization_id = $1 AND status = 'running' AND position > done
  ),
  state AS (SELECT root, outcome, ended_at, id IN (SELECT delivery_id FROM pending) AS is_pending FROM down),
  newest AS (
    SELECT DISTINCT ON (root) root, id, source_id, created_at FROM rooted
    WHERE root NOT IN (SELECT root FROM state WHERE is_pending OR outcome = 'in_flight' OR ended_at > $3)
      AND (outcome = 'accepted' OR root NOT IN (SELECT root FROM state WHERE outcome = 'accepted'))
    ORDER BY root, created_at DESC, id DESC
  )
  SELECT newest.root, newest.id, source.id AS "sourceId", source.name AS "sourceName",
    coalesce(${NEEDS_APPROVAL}, false) AS "needsApproval"
  FROM newest CROSS JOIN LATERAL (
    SELECT * FROM webhook_sources
    WHERE organization_id = $1 AND id = newest.source_id AND deleted_at IS NULL OFFSET 0
  ) AS source
  ORDER BY newest.created_at DESC, newest.id DESC`

async function readResendable(
  client: Queryable,
  viewer: Viewer,
  ids: readonly string[],
  endedBy: Date | undefined,
): Promise<Resendable[]> {
  const { rows } = await client.query<Resendable>(RESENDABLE, [viewer.organizationId, ids, endedBy ?? null])
  return rows
}

/**
 * Finds at most MAX_RESENDS payloads, the newest that match, oldest first, and whether more deliveries match. Leaves
 * out a delivery that ended after `endedBy`.
 */
async function findResendable(
  db: Db,
  viewer: Viewer,
  filter: ResendFilter,
  endedBy: Date | undefined,
): Promise<{ found: Resendable[]; isMore: boolean }> {
  const found = new Map<string, Resendable>()
  const add = async (ids: readonly string[]): Promise<void> => {
    for (const row of await readResendable(db.pool, viewer, ids, endedBy))
      if (!found.has(row.root)) found.set(row.root, row)
  }
  let after: paging.TimePosition | undefined
  if ('ids' in filter) await add(await findVisibleIds(db, viewer, filter.ids))
  else {
    let reads = 0
    do {
      reads += 1
      const page = await listVisibleIds(db, viewer, { ...filter, kind: 'payload', limit: IDS_PER_READ, after })
      await add(page.rows)
      after = page.next
    } while (after && found.size < MAX_RESENDS && reads < MAX_READS)
  }
  const isMore = after !== undefined || found.size > MAX_RESENDS
  return { found: [...found.values()].slice(0, MAX_RESENDS).toReversed(), isMore }
}

/** What a job of these payloads would send, by source. Nothing is sent. */
export async function previewResends(db: Db, viewer: Viewer, filter: ResendFilter): Promise<ResendPreviewOut> {
  // Before anything is read, so that a job of this time sends no payload that is not counted here.
  const { rows } = await db.pool.query<{ now: Date }>('SELECT clock_timestamp()::timestamptz(3) AS now')
  const { found, isMore } = await findResendable(db, viewer, filter, undefined)
  const bySource = Map.groupBy(found, ({ sourceId }) => sourceId)
  const sources = [...bySource].map(([id, each]) => ({
    id,
    name: each[0]!.sourceName,
    count: each.length,
    needs_approval: each[0]!.needsApproval,
  }))
  const total = found.filter(({ needsApproval }) => !needsApproval).length
  return {
    previewed_at: rows[0]!.now.toISOString(),
    total,
    is_more: isMore,
    sources: sources.toSorted((a, b) => b.count - a.count),
  }
}

/** A job, and when the preview was made that its creator has confirmed. */
interface NewResendJob {
  readonly id: string
  readonly filter: ResendFilter
  readonly previewedAt?: Date | undefined
  readonly perSecond: number
  readonly by: AuditedBy
}

/**
 * Creates the job, unless one has its id. Payloads of sources that ask for approval, and those of another running job
 * or under way, are left out, and those of which a delivery ended after the preview, if there was one. False if none is
 * left.
 */
export async function createResendJob(
  db: Database,
  viewer: Viewer,
  { id, filter, previewedAt, perSecond, by }: NewResendJob,
): Promise<boolean> {
  const { found } = await findResendable(db, viewer, filter, previewedAt)
  if (found.length === 0) return false
  return await inTransaction(db, async (client) => {
    await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [
      `resend jobs of ${viewer.organizationId}`,
    ])
    // Again, under the lock: another job may have been created since, or a workflow hidden from the viewer.
    const ids = found.map((each) => each.id)
    const left = await readResendable(client, viewer, await findVisibleIds({ pool: client }, viewer, ids), previewedAt)
    const sent = left.filter(({ needsApproval }) => !needsApproval).toReversed()
    if (sent.length === 0) return false
    const { rowCount } = await client.query(
      `INSERT INTO resend_jobs (id, organization_id, delivery_ids, resend_ids, per_second, created_by, created_by_name)
       VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING`,
      [
        id,
        viewer.organizationId,
        sent.map((each) => each.id),
        sent.map(() => newId()),
        perSecond,
        by.principal.userId,
        by.principal.name,
      ],
    )
    if (rowCount === 0) return true
    await recordAuditEvent(client, {
      ...by,
      action: 'resend_job.started',
      target: { kind: 'resend_job', id, name: null },
      changes: [{ field: 'payloads', old: null, new: sent.length }],
    })
    return true
  })
}

// A member sees the jobs that they started.
const jobs = (hasOutcomes: string) => `
  SELECT job.id, job.status, cardinality(job.delivery_ids) AS total, job.done, job.not_sent, job.per_second,
    job.created_by_name AS created_by, job.created_at, job.finished_at,
    coalesce((
      SELECT json_object_agg(outcome, count) FROM (
        SELECT outcome, count(*)::int AS count FROM deliveries
        WHERE ${hasOutcomes} AND id = ANY (job.resend_ids) GROUP BY outcome
      ) AS by_outcome
    ), '{}') AS outcomes
  FROM resend_jobs AS job
  WHERE job.organization_id = $1 AND ($2::uuid IS NULL OR job.created_by = $2)`

/**
 * The newest 50 jobs that the viewer sees, with the outcomes of those that are running: 50 jobs have up to 250,000
 * deliveries.
 */
export async function listResendJobs(db: Db, viewer: Viewer): Promise<ResendJobOut[]> {
  return await queryVisible(
    db,
    viewer,
    `${jobs("job.status = 'running'")} ORDER BY job.created_at DESC, job.id DESC LIMIT ${MAX_JOBS_LISTED}`,
  )
}

/** A job that the viewer sees. */
export async function findResendJob(db: Db, viewer: Viewer, id: string): Promise<ResendJobOut | undefined> {
  return (await queryVisible<ResendJobOut>(db, viewer, `${jobs('true')} AND job.id = $3`, id))[0]
}

/** Stops a job that the viewer sees, before its next payload. Whether it was running. */
export async function stopResendJob(db: Database, { organizationId, memberId }: Viewer, id: string, by: AuditedBy) {
  return await inTransaction(db, async (client) => {
    const { rows } = await client.query<{ left: number }>(
      `UPDATE resend_jobs SET status = 'stopped', finished_at = now()
       WHERE organization_id = $1 AND ($2::uuid IS NULL OR created_by = $2) AND id = $3 AND status = 'running'
       RETURNING cardinality(delivery_ids) - done AS left`,
      [organizationId, memberId, id],
    )
    if (!rows[0]) return false
    await recordAuditEvent(client, {
      ...by,
      action: 'resend_job.stopped',
      target: { kind: 'resend_job', id, name: null },
      changes: [{ field: 'payloads', old: rows[0].left, new: 0 }],
    })
    return true
  })
}

/** The next payloads of a job, for the process that has leased it. None: those left are of paused sources. */
export interface LeasedResends {
  readonly id: string
  /** Of this lease alone: once it has expired, the process may lease the job again, and both would count payloads. */
  readonly owner: string
  readonly organizationId: string
  readonly createdBy: string | null
  readonly next: readonly { readonly deliveryId: string; readonly resendId: string }[]
}

type Lease = Pick<LeasedResends, 'id' | 'owner'>

const LEASE = `lease_owner = $1, lease_until = clock_timestamp() + interval '15 s'`
const leasedColumns = (
  limit: string,
): string => `id, lease_owner AS owner, organization_id AS "organizationId", created_by AS "createdBy",
  (
    SELECT coalesce(json_agg(json_build_object('deliveryId', delivery_id, 'resendId', resend_id) ORDER BY position), '[]')
    FROM unnest(delivery_ids, resend_ids) WITH ORDINALITY AS item (delivery_id, resend_id, position)
    WHERE position > done AND position <= done + ${limit}
  ) AS next`
const LEASED = leasedColumns('per_second')

/**
 * Leases a running job that no process sends, with as many payloads as it sends in a second: first of the organization
 * of which the fewest are being sent, and of its jobs the one that waits for longest.
 */
export async function leaseResendJob(db: Db): Promise<LeasedResends | undefined> {
  const { rows } = await db.pool.query<LeasedResends>(
    `UPDATE resend_jobs SET ${LEASE}
     WHERE id = (
       SELECT resend_jobs.id FROM resend_jobs JOIN (
         SELECT id, row_number() OVER (
           PARTITION BY organization_id
           ORDER BY (lease_owner IS NOT NULL AND lease_until >= clock_timestamp()) IS NOT TRUE,
             lease_until NULLS FIRST, created_at
         ) AS number
         FROM resend_jobs WHERE status = 'running'
       ) AS queue ON queue.id = resend_jobs.id
       WHERE status = 'running' AND (lease_until IS NULL OR lease_until < clock_timestamp())
       ORDER BY queue.number, lease_until NULLS FIRST, created_at LIMIT 1 FOR UPDATE OF resend_jobs SKIP LOCKED
     ) RETURNING ${LEASED}`,
    [newId()],
  )
  return rows[0]
}

/** Those of the deliveries that were not sent again yet, and whose sources ask for an approval now. */
export async function findAskingForApproval(
  db: Db,
  { organizationId, next }: Pick<LeasedResends, 'organizationId' | 'next'>,
): Promise<ReadonlySet<string>> {
  const { rows } = await db.pool.query<{ id: string }>(
    `SELECT deliveries.id FROM unnest($2::uuid[], $3::uuid[]) AS item (delivery_id, resend_id)
     JOIN deliveries ON deliveries.id = delivery_id
     JOIN webhook_sources AS source ON source.organization_id = $1 AND source.id = deliveries.source_id
     WHERE ${NEEDS_APPROVAL} AND (SELECT true FROM deliveries AS sent WHERE sent.id = resend_id) IS NULL`,
    [organizationId, ...listsOf(next, 'deliveryId', 'resendId')],
  )
  return new Set(rows.map(({ id }) => id))
}

/**
 * Records that the next payloads of a job were sent, or refused, and renews the lease. Resolves to what follows;
 * undefined when the job is done or stopped, or another process has leased it.
 */
export async function recordResends(
  db: Db,
  { id, owner }: Lease,
  { sent, notSent }: { sent: number; notSent: number },
): Promise<LeasedResends | undefined> {
  const { rows } = await db.pool.query<LeasedResends & { isRunning: boolean }>(
    `UPDATE resend_jobs SET ${LEASE}, done = done + $3, not_sent = not_sent + $4,
       status = CASE WHEN status = 'running' AND done + $3 >= cardinality(delivery_ids) THEN 'done' ELSE status END,
       finished_at = CASE WHEN status = 'running' AND done + $3 >= cardinality(delivery_ids) THEN now() ELSE finished_at END
     WHERE id = $2 AND lease_owner = $1 RETURNING ${LEASED}, status = 'running' AS "isRunning"`,
    [owner, id, sent + notSent, notSent],
  )
  return rows[0]?.isRunning ? rows[0] : undefined
}

/**
 * Puts the payloads that are left and whose sources are paused after the others, and before them those to the sources
 * of `unanswered`: the payloads of each source stay in order. While the organization is suspended, all of them are
 * paused. Resolves as `recordResends`.
 */
export async function deferResends(
  db: Db,
  { id, owner }: Lease,
  unanswered: readonly string[],
): Promise<LeasedResends | undefined> {
  const { rows } = await db.pool.query<LeasedResends>(
    `UPDATE resend_jobs SET delivery_ids = sorted_ids, resend_ids = sorted_resend_ids
     FROM (
       SELECT array_agg(delivery_id ORDER BY is_paused, is_unanswered, position) AS sorted_ids,
         array_agg(resend_id ORDER BY is_paused, is_unanswered, position) AS sorted_resend_ids,
         count(*) FILTER (WHERE position > done AND NOT is_paused) AS ready
       FROM resend_jobs AS job, unnest(delivery_ids, resend_ids) WITH ORDINALITY AS item (delivery_id, resend_id, position)
       CROSS JOIN LATERAL (
         SELECT position > done AND (EXISTS (
           SELECT FROM deliveries JOIN webhook_sources AS source ON source.id = deliveries.source_id
           WHERE deliveries.id = delivery_id AND source.paused_at IS NOT NULL
         ) OR (SELECT is_suspended FROM organizations WHERE organizations.id = job.organization_id)) AS is_paused,
         position > done AND EXISTS (
           SELECT FROM deliveries WHERE deliveries.id = delivery_id
             AND source_id = ANY (ARRAY(SELECT source_id FROM deliveries WHERE id = ANY ($3::uuid[])))
         ) AS is_unanswered
       ) AS state
       WHERE job.id = $2
     ) AS sorted
     WHERE resend_jobs.id = $2 AND lease_owner = $1 AND status = 'running'
     RETURNING ${leasedColumns('least(per_second, ready)')}`,
    [owner, id, unanswered],
  )
  return rows[0]
}

/** Gives the lease back, so that a process goes on after these seconds. */
export async function releaseResendJob(db: Db, { id, owner }: Lease, seconds: number): Promise<void> {
  await db.pool.query(
    `UPDATE resend_jobs SET lease_owner = NULL, lease_until = clock_timestamp() + make_interval(secs => $3)
     WHERE id = $2 AND lease_owner = $1`,
    [owner, id, seconds],
  )
}

/** Deletes at most `batchSize` jobs that ended longer ago than the age. Resolves to how many. */
export async function deleteOldResendJobs(db: Db, { olderThanDays, batchSize }: AgedBatch): Promise<number> {
  const where = 'finished_at < now() - make_interval(days => $2)'
  return await deleteRows(db, { table: 'resend_jobs', where }, batchSize, olderThanDays)
}
