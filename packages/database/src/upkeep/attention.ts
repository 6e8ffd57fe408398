import type { AttentionDoneIn, AttentionOut } from '@workflow-service/contract'
import { type Connection, type Db, inTransaction } from '../connection/index.ts'
import {
  type AuditedBy,
  ERROR_CODE,
  FAILED_AT,
  FAILED_RECENTLY,
  isDeliveryVisible,
  isVisible,
  NEEDS_ATTENTION,
  queryVisible,
  recordAuditEvent,
  type Viewer,
} from '../organizations/index.ts'

/** How many failed runs and deliveries are read, and how many groups of them are shown. */
export const MAX_ATTENTION_READ = 1_000
const MAX_GROUPS = 50

const RECENT = `created_at > now() - interval '7 days'`
/** Runs that were accepted before are not read: they wait for approvals up to 7 days, for budgets until a new month. */
const MAY_BE_RECENT = `start.created_at > now() - interval '45 days'`
const FAILED = `outcome IN ('rejected', 'timed_out', 'unreachable', 'refused', 'invalid', 'unknown')`
const WORKFLOW_OF_DELIVERY = `
  LEFT JOIN starts AS start ON start.organization_id = $1 AND start.id = delivery.run_id
  LEFT JOIN workflows AS workflow ON workflow.id = start.workflow_id`
const IS_DELIVERY_VISIBLE = isDeliveryVisible('$2', { isJoined: true })
// The resend stands for the payload.
const IS_NOT_RESENT = `(SELECT true FROM deliveries AS again WHERE again.resend_of = delivery.id LIMIT 1) IS NULL`
/** The newest verification of each source. */
const VERIFICATIONS = `
  FROM (SELECT id, name FROM webhook_sources WHERE organization_id = $1 AND deleted_at IS NULL LIMIT 1000) AS source
  CROSS JOIN LATERAL (
    SELECT id, outcome, status, reason, created_at, handled_at FROM deliveries
    WHERE source_id = source.id AND kind = 'verification' ORDER BY created_at DESC, id DESC LIMIT 1
  ) AS delivery
  WHERE delivery.outcome NOT IN ('accepted', 'in_flight') AND handled_at IS NULL AND delivery.${RECENT}`

const newest = (column: string, of: string) => `(array_agg(${column} ORDER BY ${of}.at DESC, ${of}.id DESC))[1]`

const ATTENTION = `
  WITH run AS MATERIALIZED (
    SELECT id, workflow_id, error, ${FAILED_AT} AS at FROM (
      SELECT id, workflow_id, error, created_at, not_succeeded_at FROM starts AS start
      WHERE organization_id = $1 AND ${NEEDS_ATTENTION} AND ${MAY_BE_RECENT}
      ORDER BY created_at DESC, id DESC LIMIT ${MAX_ATTENTION_READ}
    ) AS start WHERE ${FAILED_RECENTLY}
  ),
  failed AS MATERIALIZED (
    SELECT id, source_id, run_id, outcome, status, reason, created_at AS at FROM deliveries
    WHERE organization_id = $1 AND kind = 'payload' AND handled_at IS NULL AND ${FAILED} AND ${RECENT}
    ORDER BY created_at DESC, id DESC LIMIT ${MAX_ATTENTION_READ}
  )
  SELECT * FROM (
    SELECT 'run_failed' AS kind, workflow.id, workflow.name AS title, ${ERROR_CODE} AS code, NULL::integer AS status,
      ${newest('start.error', 'start')} AS reason, ${newest('start.id', 'start')} AS newest_id,
      max(start.at) AS at, count(*)::integer AS count,
      (SELECT count(*) FROM run) = ${MAX_ATTENTION_READ} AS is_more
    FROM run AS start JOIN workflows AS workflow ON workflow.id = start.workflow_id AND ${isVisible('workflow', '$2')}
    GROUP BY workflow.id, workflow.name, ${ERROR_CODE}
  UNION ALL
    SELECT 'delivery_not_accepted', delivery.source_id, coalesce(source.name, ''), delivery.outcome, delivery.status,
      ${newest('coalesce(delivery.reason, delivery.outcome)', 'delivery')}, ${newest('delivery.id', 'delivery')},
      max(delivery.at), count(*)::integer, (SELECT count(*) FROM failed) = ${MAX_ATTENTION_READ}
    FROM failed AS delivery ${WORKFLOW_OF_DELIVERY}
    LEFT JOIN webhook_sources AS source ON source.organization_id = $1 AND source.id = delivery.source_id
    WHERE ${IS_DELIVERY_VISIBLE} AND ${IS_NOT_RESENT}
    GROUP BY delivery.source_id, source.name, delivery.outcome, delivery.status
  UNION ALL
    SELECT 'source_not_verified', source.id, source.name, delivery.outcome, delivery.status,
      coalesce(delivery.reason, delivery.outcome), delivery.id, delivery.created_at, 1, false
    ${VERIFICATIONS}
  ) AS found
  ORDER BY at DESC, newest_id LIMIT ${MAX_GROUPS}`

/** What failed and is not done, in groups by source and answer, or by workflow and error. */
export async function readAttention(db: Connection, viewer: Viewer): Promise<AttentionOut[]> {
  return await queryVisible(db, viewer, ATTENTION)
}

// Each selects the ids of a group's entries that the viewer sees, up to the time $3. $4 to $6: id, code and status.
const GROUPS: Record<AttentionDoneIn['kind'], { readonly table: string; readonly ids: string }> = {
  run_failed: {
    table: 'starts',
    ids: `SELECT start.id FROM starts AS start
      JOIN workflows AS workflow ON workflow.id = start.workflow_id AND ${isVisible('workflow', '$2')}
      WHERE start.organization_id = $1 AND ${NEEDS_ATTENTION} AND ${MAY_BE_RECENT}
        AND ${FAILED_RECENTLY} AND ${FAILED_AT} <= $3
        AND start.workflow_id = $4 AND ${ERROR_CODE} = $5 AND $6::integer IS NULL
      ORDER BY start.created_at DESC, start.id DESC`,
  },
  delivery_not_accepted: {
    table: 'deliveries',
    ids: `SELECT delivery.id FROM deliveries AS delivery ${WORKFLOW_OF_DELIVERY}
      WHERE delivery.organization_id = $1 AND delivery.kind = 'payload' AND delivery.handled_at IS NULL
        AND delivery.${FAILED} AND delivery.${RECENT} AND delivery.created_at <= $3
        AND delivery.source_id = $4 AND delivery.outcome = $5 AND delivery.status IS NOT DISTINCT FROM $6
        AND ${IS_DELIVERY_VISIBLE}
      ORDER BY delivery.created_at DESC, delivery.id DESC`,
  },
  source_not_verified: {
    table: 'deliveries',
    ids: `SELECT delivery.id ${VERIFICATIONS} AND $2::uuid IS NOT DISTINCT FROM $2 AND delivery.created_at <= $3
      AND source.id = $4 AND delivery.outcome = $5 AND delivery.status IS NOT DISTINCT FROM $6`,
  },
}

/** The entries that one call marks. */
const MAX_DONE = 10_000

/** Marks a group as done up to a time, as far as the viewer sees it, with its audit event. */
export async function markAttentionDone(
  db: Db,
  { organizationId, memberId }: Viewer,
  { kind, id, code, status, until }: AttentionDoneIn,
  by: AuditedBy,
): Promise<{ done: number; isMore: boolean }> {
  const { table, ids } = GROUPS[kind]
  return await inTransaction(db, async (client) => {
    const { rowCount } = await client.query(
      `UPDATE ${table} SET handled_at = now() WHERE handled_at IS NULL AND id = ANY (ARRAY(
         SELECT id FROM ${table} WHERE id = ANY (ARRAY(${ids} LIMIT ${MAX_DONE})) ORDER BY id FOR NO KEY UPDATE
       ))`,
      [organizationId, memberId, new Date(until), id, code, status],
    )
    const done = rowCount ?? 0
    if (done > 0) {
      await recordAuditEvent(client, {
        ...by,
        action: 'attention.done',
        target: { kind: kind === 'run_failed' ? 'workflow' : 'webhook_source', id, name: null },
        changes: [
          { field: 'reason', old: null, new: status === null ? code : `${code} ${status}` },
          { field: kind === 'run_failed' ? 'runs' : 'deliveries', old: null, new: done },
        ],
      })
    }
    return { done, isMore: done === MAX_DONE }
  })
}
