import type { PoolClient } from 'pg'
import { type Db, inTransaction } from '../connection/index.ts'
import {
  type AuditedBy,
  hasQueueOf,
  VERY_LONG_QUEUE,
  isVisible,
  recordAuditEvent,
  unfinishedStarts,
  type Viewer,
} from '../organizations/index.ts'

export type CancelOutcome =
  /** `sessionId`: a session whose next start may run now. */
  | { readonly kind: 'cancelled'; readonly sessionId: string }
  /** There is no such run, or the viewer does not see it. */
  | { readonly kind: 'not_found' }
  /** It has ended already. */
  | { readonly kind: 'ended' }

/**
 * Ends a run that has not ended, before its next step, with its audit event (contract README, "Runs"). The runner that
 * executes it loses the lease of the session, so that nothing more of the run is written or sent. A payload that is
 * under way is finished and recorded, and the next start of the session waits for it.
 */
export async function cancelRun(
  db: Db,
  { organizationId, memberId }: Viewer,
  runId: string,
  by: AuditedBy,
): Promise<CancelOutcome> {
  return await inTransaction(db, async (client): Promise<CancelOutcome> => {
    const find = async () => {
      const { rows } = await client.query<{ sessionId: string; workflowName: string }>(
        `SELECT start.session_id AS "sessionId", workflow.name AS "workflowName" FROM starts AS start
         JOIN workflows AS workflow ON workflow.id = start.workflow_id AND ${isVisible('workflow', '$3')}
         WHERE start.id = $1 AND start.organization_id = $2`,
        [runId, organizationId, memberId],
      )
      return rows[0]
    }
    const run = await find()
    if (!run) return { kind: 'not_found' }
    const runs = [{ id: runId, sessionId: run.sessionId }]
    const cancelled = await cancelStarts(client, runs, 'finished_at IS NULL', memberId, by)
    // It may have been hidden from the viewer meanwhile.
    if (cancelled === 0) return { kind: (await find()) ? 'ended' : 'not_found' }
    await recordAuditEvent(client, {
      ...by,
      action: 'run.cancelled',
      target: { kind: 'run', id: runId, name: run.workflowName },
    })
    return { kind: 'cancelled', sessionId: run.sessionId }
  })
}

/** The runs of one transaction of `cancelQueuedRuns`, which locks their sessions, and those of one call. */
const BATCH_SIZE = 500
const MAX_RUNS = 10_000

/** Whose queued runs are cancelled. */
export interface Queue {
  readonly kind: 'workflow' | 'session'
  readonly id: string
}

/**
 * Cancels queued runs of a workflow or session that the viewer sees, at most 10,000: of a workflow the newest, if the
 * organization has a long queue, else in no order, because to sort them PostgreSQL would read all. Resolves to how
 * many, and whether some are left for another call.
 */
export async function cancelQueuedRuns(
  db: Db,
  { organizationId, memberId }: Viewer,
  { kind, id }: Queue,
  by: AuditedBy,
): Promise<{ readonly cancelled: number; readonly isMore: boolean }> {
  const starts =
    kind === 'session'
      ? unfinishedStarts('sessions.id = $2')
      : (await hasQueueOf(db.pool, organizationId, VERY_LONG_QUEUE))
        ? `(
            SELECT * FROM starts WHERE workflow_id = $2 AND status = 'queued'
            ORDER BY created_at DESC, id DESC LIMIT ${MAX_RUNS + 1}
          ) AS starts`
        : unfinishedStarts()
  const { rows } = await db.pool.query<{ id: string; sessionId: string; workflowName: string }>(
    `SELECT starts.id, starts.session_id AS "sessionId", workflow.name AS "workflowName" FROM ${starts}
     JOIN workflows AS workflow ON workflow.id = starts.workflow_id AND ${isVisible('workflow', '$3')}
     WHERE starts.organization_id = $1 AND starts.${kind === 'workflow' ? 'workflow_id' : 'session_id'} = $2
       AND starts.status = 'queued' LIMIT ${MAX_RUNS + 1}`,
    [organizationId, id, memberId],
  )
  let total = 0
  for (let first = 0; first < Math.min(rows.length, MAX_RUNS); first += BATCH_SIZE) {
    total += await inTransaction(db, async (client) => {
      const batch = rows.slice(first, Math.min(first + BATCH_SIZE, MAX_RUNS))
      const cancelled = await cancelStarts(client, batch, "status = 'queued'", memberId, by)
      if (cancelled > 0) {
        await recordAuditEvent(client, {
          ...by,
          action: 'queue.cancelled',
          target: { kind, id, name: kind === 'workflow' ? (rows[0]?.workflowName ?? null) : null },
          changes: [{ field: 'runs', old: null, new: cancelled }],
        })
      }
      return cancelled
    })
  }
  return { cancelled: total, isMore: rows.length > MAX_RUNS }
}

/** How long a payload may be in flight (services/dispatcher/README.md). */
const IN_FLIGHT_SECONDS = 40

/** Ends those of the runs that meet the condition and that the viewer sees, in their sessions. Resolves to how many. */
async function cancelStarts(
  client: PoolClient,
  runs: readonly { readonly id: string; readonly sessionId: string }[],
  condition: string,
  memberId: Viewer['memberId'],
  { principal: { userId, name } }: AuditedBy,
): Promise<number> {
  const sessionIds = [...new Set(runs.map(({ sessionId }) => sessionId))]
  // First, as in every statement that writes runs: to claim or finish one takes this lock, too. What the viewer sees
  // may change meanwhile.
  await client.query('SELECT FROM sessions WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE', [sessionIds])
  const { rows: cancelled } = await client.query<{ id: string }>(
    `UPDATE starts SET status = 'cancelled', error = NULL, finished_at = now(), not_succeeded_at = now(),
       cancelled_by = $2, cancelled_by_name = $3
     FROM workflows AS workflow
     WHERE starts.id = ANY ($1::uuid[]) AND ${condition}
       AND workflow.id = starts.workflow_id AND ${isVisible('workflow', '$4')}
     RETURNING starts.id`,
    [runs.map(({ id }) => id), userId, name, memberId],
  )
  const ids = cancelled.map(({ id }) => id)
  if (ids.length === 0) return 0
  await client.query(
    `UPDATE approvals SET status = 'declined', reason = 'The run was cancelled.', decided_at = now(),
       decided_by = $2, decided_by_name = $3
     WHERE run_id = ANY ($1::uuid[]) AND status IN ('waiting', 'approved')
       AND NOT EXISTS (SELECT FROM deliveries WHERE deliveries.id = approvals.delivery_id)`,
    [ids, userId, name],
  )
  // A session moves past its ended starts, and its runner loses the lease. Where an earlier start has not ended, the
  // session comes to the cancelled one later. A resume of a source must not end its wait for a payload in flight, nor
  // must a start that was never begun, and is cancelled while it waits for that payload; without another start,
  // `waiting_since` keeps the wait for the next one.
  await client.query(
    `UPDATE sessions SET last_finished_number = past.number, lease_owner = NULL, lease_until = NULL,
       lease_epoch = lease_epoch + 1, paused_source_id = NULL,
       waiting_since = CASE WHEN last_start_number > past.number OR past.quiet_at > now()
         THEN greatest(now(), past.quiet_at) END
     FROM (
       SELECT session.id,
         coalesce((
           SELECT number - 1 FROM starts
           WHERE session_id = session.id AND number > session.last_finished_number AND finished_at IS NULL
           ORDER BY number LIMIT 1
         ), session.last_start_number) AS number,
         (
           SELECT CASE WHEN started_at IS NULL THEN session.waiting_since ELSE (
             SELECT max(deliveries.created_at) + interval '${IN_FLIGHT_SECONDS} s' FROM deliveries
             WHERE deliveries.run_id = starts.id AND deliveries.outcome = 'in_flight'
           ) END
           FROM starts WHERE session_id = session.id AND number = session.last_finished_number + 1
         ) AS quiet_at
       FROM sessions AS session WHERE session.id = ANY ($1::uuid[])
     ) AS past
     WHERE sessions.id = past.id AND past.number > sessions.last_finished_number`,
    [sessionIds],
  )
  return ids.length
}
