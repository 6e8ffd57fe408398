import {
  APPROVAL_DAYS,
  type ApprovalDecision,
  type ApprovalOut,
  type WaitingApprovalOut,
  checkPayload,
  WAITING_COUNTED_MAX,
} from '@workflow-service/contract'
import type { PoolClient } from 'pg'
import {
  column,
  type Connection,
  type Db,
  inTransaction,
  listsOf,
  queryRows,
  type RowOfStatement,
  runStatement,
  statement,
} from '../connection/index.ts'
import { type Lease, NEEDS_APPROVAL } from '../deliveries/index.ts'
import { type AuditedBy, isVisible, queryVisible, recordAuditEvent, type Viewer } from '../organizations/index.ts'

/** A planned payload of a run that may need an approval. */
export interface PayloadToApprove {
  readonly callId: string
  readonly deliveryId: string
  readonly sourceId: string
  readonly sourceName: string
  readonly payload: Record<string, unknown>
}

/** Payloads of a run that waits. The first one is known to need an approval. */
export interface ApprovalRequest {
  readonly lease: Lease
  readonly organizationId: string
  readonly runId: string
  /** Where the journal continues. */
  readonly position: number
  readonly payloads: readonly [PayloadToApprove, ...PayloadToApprove[]]
}

/**
 * Parks a run until a person has decided on its first payload (contract README, "Approvals"): in one transaction,
 * records and journals the approvals that its payloads need and have not requested yet, and releases the session.
 * Resolves to `decided`, and changes nothing, if the first payload no longer waits, or its source is deleted. A
 * decision locks the session's row too, so that it comes either before, and is seen here, or after, and makes the
 * parked session acquirable. Safe to repeat after a lost answer.
 */
export async function parkForApproval(
  db: Db,
  owner: string,
  { lease, organizationId, runId, position, payloads }: ApprovalRequest,
): Promise<'parked' | 'decided' | 'lease_lost'> {
  const [{ deliveryId: firstId, sourceId: firstSourceId }] = payloads
  return await inTransaction(db, async (client) => {
    // Orders this and an edit of the URL or a deletion, which end the approvals that were requested before.
    const { rows: sources } = await client.query<{ id: string }>(
      `SELECT id FROM webhook_sources WHERE organization_id = $1 AND id = ANY ($2::uuid[]) AND deleted_at IS NULL
       ORDER BY id FOR SHARE`,
      [organizationId, payloads.map(({ sourceId }) => sourceId)],
    )
    const leased = await client.query(
      `SELECT FROM sessions WHERE id = $1 AND lease_epoch = $2 AND lease_owner = $3 FOR NO KEY UPDATE`,
      [lease.sessionId, lease.epoch, owner],
    )
    const { rows: known } = await client.query<{ isWaiting: boolean }>(
      `SELECT status = 'waiting' AND expires_at > now() AS "isWaiting" FROM approvals WHERE delivery_id = $1 AND run_id = $2`,
      [firstId, runId],
    )
    // Without the lease, an earlier call whose answer was lost may have parked the run.
    if (leased.rowCount === 0) return known[0]?.isWaiting ? 'parked' : 'lease_lost'
    if (known[0]?.isWaiting === false || !sources.some(({ id }) => id === firstSourceId)) return 'decided'
    await recordRequests(client, { lease, organizationId, runId, position, payloads })
    await client.query(
      `UPDATE starts SET status = 'waiting', attempts = attempts - 1 WHERE id = $1 AND status = 'running'`,
      [runId],
    )
    await client.query(
      `UPDATE sessions SET lease_owner = NULL, lease_until = NULL,
         waiting_since = (SELECT min(expires_at) FROM approvals WHERE run_id = $2 AND status = 'waiting')
       WHERE id = $1`,
      [lease.sessionId, runId],
    )
    return 'parked'
  })
}

/** Records the approvals that the payloads need, and their steps in the journal. */
async function recordRequests(
  client: PoolClient,
  { lease, organizationId, runId, position, payloads }: ApprovalRequest,
): Promise<void> {
  const { rows } = await client.query<{ deliveryId: string; expiresAt: Date }>(
    `INSERT INTO approvals (delivery_id, organization_id, run_id, source_id, source_name, request_body, expires_at)
     SELECT payload.delivery_id, $1, $2, payload.source_id, payload.source_name, payload.body::json,
       now() + make_interval(days => ${APPROVAL_DAYS})
     FROM unnest($3::uuid[], $4::uuid[], $5::text[], $6::text[]) WITH ORDINALITY
       AS payload (delivery_id, source_id, source_name, body, position)
     JOIN webhook_sources AS source
       ON source.organization_id = $1 AND source.id = payload.source_id AND source.deleted_at IS NULL
     WHERE payload.position = 1 OR ${NEEDS_APPROVAL}
     ON CONFLICT (delivery_id) DO NOTHING
     RETURNING delivery_id AS "deliveryId", expires_at AS "expiresAt"`,
    [
      organizationId,
      runId,
      ...listsOf(payloads, 'deliveryId', 'sourceId', 'sourceName'),
      payloads.map(({ payload }) => JSON.stringify(payload)),
    ],
  )
  const requested = new Map(rows.map(({ deliveryId, expiresAt }) => [deliveryId, expiresAt]))
  const steps = payloads.flatMap(({ callId, deliveryId, sourceName }) => {
    const expiresAt = requested.get(deliveryId)
    if (!expiresAt) return []
    return {
      call_id: callId,
      delivery_id: deliveryId,
      source_name: sourceName,
      expires_at: expiresAt.toISOString(),
    }
  })
  await client.query(
    `INSERT INTO run_steps (run_id, position, kind, data, epoch)
     SELECT $1, $2 + step.index - 1, 'approval_request', step.data::json, $3
     FROM unnest($4::text[]) WITH ORDINALITY AS step (data, index)`,
    [runId, position, lease.epoch, steps.map((step) => JSON.stringify(step))],
  )
}

const READ_APPROVAL = statement('runs/read-approval', {
  status: column.text<'waiting' | ApprovalDecision>(),
  /** The name of the person who decided; null while it waits, and if it expired. */
  decidedBy: column.text().orNull,
  /** Why it was declined. */
  reason: column.text().orNull,
  /** The payload that was approved, if the person has edited it. */
  payload: column.json<Record<string, unknown>>().orNull,
  isOverdue: column.boolean,
})

/** The approval of a payload as the run sees it. */
export type ApprovalState = Omit<RowOfStatement<typeof READ_APPROVAL>, 'isOverdue'>

/**
 * The approval of a payload; undefined if none was requested. One whose time is over expires here, with its audit
 * event, unless a transaction that began in time has decided meanwhile: the decision counts.
 */
export async function readApproval(
  db: Db,
  organizationId: string,
  deliveryId: string,
): Promise<ApprovalState | undefined> {
  const values = [organizationId, deliveryId]
  const { rows } = await runStatement(db, READ_APPROVAL, values)
  if (!rows[0]) return undefined
  const { isOverdue, ...state } = rows[0]
  if (!isOverdue) return state
  await inTransaction(db, async (client) => {
    const { rows: expired } = await client.query<{ sourceName: string }>(
      `UPDATE approvals SET status = 'expired', decided_at = now()
       WHERE organization_id = $1 AND delivery_id = $2 AND status = 'waiting' RETURNING source_name AS "sourceName"`,
      values,
    )
    if (!expired[0]) return
    await recordAuditEvent(client, {
      actor: { kind: 'service', name: 'runner' },
      organizationId,
      action: 'delivery.expired',
      target: { kind: 'delivery', id: deliveryId, name: expired[0].sourceName },
    })
  })
  return await readApproval(db, organizationId, deliveryId)
}

/** Whether an approval was requested for the delivery, of any organization. */
export async function hasApproval(db: Db, deliveryId: string): Promise<boolean> {
  return (await db.pool.query('SELECT FROM approvals WHERE delivery_id = $1', [deliveryId])).rowCount === 1
}

/** A person's decision on the waiting payloads of a run, or on one of them. */
export interface ApprovalDecisionRequest {
  readonly decision: Exclude<ApprovalDecision, 'expired'>
  /** Why it is declined. */
  readonly reason: string | null
  readonly runId?: string | undefined
  readonly deliveryId?: string | undefined
  /** Approves this payload in place of the shown one; only with `deliveryId`. */
  readonly payload?: Record<string, unknown> | undefined
}

export type DecisionOutcome =
  | { readonly kind: 'decided'; readonly runId: string; readonly sessionId: string; readonly deliveryIds: string[] }
  /** No such run or payload asked for an approval. */
  | { readonly kind: 'not_found' }
  /** All were decided, or have expired, or the run has ended: nothing more of it is sent. */
  | { readonly kind: 'not_waiting' }
  /** The edited payload does not follow the example of the source. Nothing was decided. */
  | { readonly kind: 'invalid'; readonly reason: string }

/**
 * Records a decision with its audit events, and makes the run's session acquirable. Of two decisions on a payload, the
 * first counts. At least one of `runId` and `deliveryId` must be given.
 */
export async function decideApprovals(
  db: Db,
  { decision, reason, runId, deliveryId, payload }: ApprovalDecisionRequest,
  by: AuditedBy,
): Promise<DecisionOutcome> {
  if (runId === undefined && deliveryId === undefined) throw new TypeError('A run or a delivery is required')
  const { organizationId, userId, name } = by.principal
  // Only what is given is compared: with a condition that either of them may skip, PostgreSQL reads all approvals.
  const given = Object.entries({ run_id: runId, delivery_id: deliveryId }).filter(([, id]) => id !== undefined)
  const isGiven = given.map(([field], index) => `approvals.${field} = $${index + 2}`).join(' AND ')
  return await inTransaction(db, async (client): Promise<DecisionOutcome> => {
    const { rows: runs } = await client.query<{ runId: string; sessionId: string }>(
      `SELECT start.id AS "runId", start.session_id AS "sessionId" FROM approvals
       JOIN starts AS start ON start.id = approvals.run_id
       JOIN workflows AS workflow ON workflow.id = start.workflow_id AND workflow.deleted_at IS NULL
       WHERE approvals.organization_id = $1 AND ${isGiven} LIMIT 1`,
      [organizationId, ...given.map(([, id]) => id)],
    )
    const [run] = runs
    if (!run) return { kind: 'not_found' }
    // As in a save of the source and in `parkForApproval`, sources are locked before sessions.
    const edited = payload && JSON.stringify(payload)
    if (edited) {
      const { rows: examples } = await client.query<{ example: Record<string, unknown> }>(
        `SELECT source.example_request_body AS example FROM approvals
         JOIN webhook_sources AS source ON source.organization_id = $1 AND source.id = approvals.source_id
         WHERE approvals.organization_id = $1 AND delivery_id = $2 FOR SHARE OF source`,
        [organizationId, deliveryId],
      )
      const invalid = examples[0] && checkPayload(examples[0].example, payload, edited)
      if (invalid) return { kind: 'invalid', reason: invalid.reason }
    }
    await client.query('SELECT FROM sessions WHERE id = $1 FOR NO KEY UPDATE', [run.sessionId])
    const { rows: decided } = await client.query<{
      deliveryId: string
      sourceName: string
      endpointUrl: string | null
    }>(
      `UPDATE approvals SET status = $4, reason = $5, decided_at = now(), decided_by = $6, decided_by_name = $7,
         edited_body = $8
       WHERE organization_id = $1 AND run_id = $2 AND ($3::uuid IS NULL OR delivery_id = $3)
         AND status = 'waiting' AND expires_at > now() AND (SELECT finished_at FROM starts WHERE id = $2) IS NULL
       RETURNING delivery_id AS "deliveryId", source_name AS "sourceName", (
         SELECT endpoint_url FROM webhook_sources AS source
         WHERE source.organization_id = $1 AND source.id = approvals.source_id
       ) AS "endpointUrl"`,
      [organizationId, run.runId, deliveryId ?? null, decision, reason, userId, name, edited ?? null],
    )
    if (decided.length === 0) return { kind: 'not_waiting' }
    const queued = await client.query(`UPDATE starts SET status = 'queued' WHERE id = $1 AND status = 'waiting'`, [
      run.runId,
    ])
    // A run that is under way looks for decisions by itself, before it parks its session again.
    if (queued.rowCount) await client.query('UPDATE sessions SET waiting_since = now() WHERE id = $1', [run.sessionId])
    for (const { deliveryId: id, sourceName, endpointUrl } of decided) {
      await recordAuditEvent(client, {
        ...by,
        action: `delivery.${decision}`,
        target: { kind: 'delivery', id, name: sourceName },
        changes: [
          { field: 'run_id', old: null, new: run.runId },
          ...(decision === 'approved' ? [{ field: 'endpoint_url', old: null, new: endpointUrl }] : []),
          ...(edited ? [{ field: 'payload', old: null, new: 'edited' }] : []),
          ...(reason === null ? [] : [{ field: 'reason', old: null, new: reason }]),
        ],
      })
    }
    return { kind: 'decided', ...run, deliveryIds: decided.map(({ deliveryId: id }) => id) }
  })
}

/**
 * Records that a payload of a source with `approval: first` was accepted after an approval, unless the source was saved
 * since `version`: no further approval is needed.
 */
export async function endFirstApproval(db: Db, organizationId: string, sourceId: string, version: number) {
  await db.pool.query(
    `UPDATE webhook_sources SET approved_at = now()
     WHERE organization_id = $1 AND id = $2 AND version = $3 AND approval = 'first' AND approved_at IS NULL`,
    [organizationId, sourceId, version],
  )
}

/** The approvals of a run, oldest first, at most 200; with the payloads and URLs of those that wait. */
export async function listApprovalsOfRun(db: Db, organizationId: string, runId: string): Promise<ApprovalOut[]> {
  return await queryRows<ApprovalOut>(
    db,
    `SELECT delivery_id, source_id, source_name, source.endpoint_url, CASE WHEN status = 'waiting' THEN request_body END AS payload,
       status, reason, requested_at, expires_at, decided_at, decided_by_name AS decided_by
     FROM approvals
     LEFT JOIN webhook_sources AS source
       ON source.id = source_id AND source.organization_id = $1 AND source.deleted_at IS NULL AND status = 'waiting'
     WHERE approvals.organization_id = $1 AND run_id = $2 ORDER BY requested_at, delivery_id LIMIT 200`,
    [organizationId, runId],
  )
}

const MAX_LISTED = 100
/** A larger payload is left out of the list. */
const LISTED_BYTES = 16_384
const WAITING = `
  FROM (
    SELECT * FROM approvals
    WHERE organization_id = $1 AND status = 'waiting' AND expires_at > now()
      AND (SELECT finished_at FROM starts WHERE starts.id = approvals.run_id) IS NULL
    ORDER BY requested_at, delivery_id LIMIT ${WAITING_COUNTED_MAX}
  ) AS approval
  JOIN starts AS start ON start.id = approval.run_id
  JOIN workflows AS workflow ON workflow.id = start.workflow_id AND ${isVisible('workflow', '$2')}`

/** How many payloads wait that the viewer sees, at most 1,000. */
export async function countWaitingApprovals(db: Db, viewer: Viewer): Promise<number> {
  const [row] = await queryVisible<{ count: number }>(db, viewer, `SELECT count(*)::integer AS count ${WAITING}`)
  return row?.count ?? 0
}

/** The first and the newest of the payloads that wait and that the viewer sees, and how many, at most 1,000. */
export async function summarizeWaitingApprovals(db: Connection, viewer: Viewer) {
  const [row] = await queryVisible<{
    count: number
    newest_at: string
    first: Pick<WaitingApprovalOut, 'delivery_id' | 'run_id' | 'source_name'>
  }>(
    db,
    viewer,
    `SELECT count(*)::integer AS count, max(requested_at) AS newest_at, (
       array_agg(json_build_object('delivery_id', delivery_id, 'run_id', run_id, 'source_name', source_name)
         ORDER BY requested_at, delivery_id)
     )[1] AS first ${WAITING}`,
  )
  return row?.count ? row : undefined
}

/** The payloads that wait and that the viewer sees, oldest first, at most 100. */
export async function listWaitingApprovals(db: Db, viewer: Viewer): Promise<WaitingApprovalOut[]> {
  return await queryVisible(
    db,
    viewer,
    `SELECT delivery_id, run_id, source_id, source_name, source.endpoint_url,
       CASE WHEN octet_length(request_body::text) <= ${LISTED_BYTES} THEN request_body END AS payload, requested_at, expires_at,
       json_build_object('id', workflow.id, 'name', workflow.name) AS workflow
     ${WAITING}
     LEFT JOIN webhook_sources AS source
       ON source.id = source_id AND source.organization_id = $1 AND source.deleted_at IS NULL
     ORDER BY requested_at, delivery_id LIMIT ${MAX_LISTED}`,
  )
}
