import type { RunEvent, RunEventType } from '@workflow-service/contract'
import { type Db, inTransaction, queryRows } from '../connection/index.ts'
import { recordFacts } from './notices.ts'

/** The most events of an organization that wait to be sent. While so many wait, no others are recorded. */
export const MAX_WAITING_EVENTS = 1_000
const PAGE_SIZE = 500
/** Longer than a transaction that ends a run, or requests an approval: it may commit after a later one. */
const OVERLAP = `interval '2 minutes'`

const ENDED = `start.organization_id = webhook.organization_id AND start.not_succeeded_at > webhook.events_after`
const WAITING = `approval.organization_id = webhook.organization_id AND approval.status = 'waiting'
  AND approval.requested_at > webhook.events_after`

/** The organizations in which something has happened of which their webhook may get an event. */
export async function listEventOrganizations(db: Db): Promise<string[]> {
  const rows = await queryRows<{ id: string }>(
    db,
    `SELECT webhook.organization_id AS id FROM notice_webhooks AS webhook
     JOIN organizations AS organization ON organization.id = webhook.organization_id AND NOT organization.is_suspended
     WHERE webhook.events <> '{}' AND (EXISTS (SELECT FROM starts AS start WHERE ${ENDED})
       OR EXISTS (SELECT FROM approvals AS approval WHERE ${WAITING}))`,
    [],
  )
  return rows.map(({ id }) => id)
}

interface EventRow extends Omit<RunEvent['data'], 'at'> {
  readonly type: RunEventType
  readonly topic: string
  readonly at: Date
  readonly workflowName: string
  readonly source_name: string | null
}

/** The oldest $2 that have no event yet. */
const EVENTS = `
  SELECT found.*, workflow.name AS "workflowName" FROM notice_webhooks AS webhook
  CROSS JOIN LATERAL (
    (SELECT type, type || ' ' || start.id AS topic, start.not_succeeded_at AS at, start.id AS run_id, start.workflow_id,
       start.session_id, split_part(start.error, ': ', 1) AS error_code, NULL::uuid AS delivery_id,
       NULL::uuid AS source_id, NULL AS source_name
     FROM starts AS start
     CROSS JOIN LATERAL (SELECT CASE WHEN start.error IS NULL THEN 'run.cancelled' ELSE 'run.failed' END AS type) AS kind
     WHERE ${ENDED} AND type = ANY (webhook.events) AND NOT EXISTS (
       SELECT FROM notices WHERE organization_id = $1 AND topic = type || ' ' || start.id)
     ORDER BY start.not_succeeded_at, start.id LIMIT $2)
    UNION ALL
    (SELECT 'approval.waiting', 'approval.waiting ' || approval.delivery_id, approval.requested_at, start.id,
       start.workflow_id, start.session_id, NULL, approval.delivery_id, approval.source_id, approval.source_name
     FROM approvals AS approval JOIN starts AS start ON start.id = approval.run_id
     WHERE ${WAITING} AND 'approval.waiting' = ANY (webhook.events) AND NOT EXISTS (
       SELECT FROM notices WHERE organization_id = $1 AND topic = 'approval.waiting ' || approval.delivery_id)
     ORDER BY approval.requested_at, approval.delivery_id LIMIT $2)
  ) AS found
  JOIN workflows AS workflow ON workflow.id = found.workflow_id
  WHERE webhook.organization_id = $1 ORDER BY found.at, topic LIMIT $2`

/**
 * Records the events for the webhook of an organization: one for each run that failed or was cancelled, and for each
 * payload that waits, of the types that were chosen. What happens while no process does so is found later. One process
 * at a time does it for an organization. Resolves to how many.
 */
export async function recordRunEvents(db: Db, organizationId: string): Promise<number> {
  return await inTransaction(db, async (client) => {
    const locked = await client.query<{ waiting: number }>(
      `SELECT (SELECT count(*)::integer FROM notices
         WHERE organization_id = $1 AND status = 'waiting' AND user_id IS NULL) AS waiting
       FROM notice_webhooks WHERE organization_id = $1 FOR UPDATE SKIP LOCKED`,
      [organizationId],
    )
    const [webhook] = locked.rows
    const limit = Math.min(PAGE_SIZE, MAX_WAITING_EVENTS - (webhook?.waiting ?? MAX_WAITING_EVENTS))
    if (!webhook || limit <= 0) return 0
    const { rows } = await client.query<EventRow>(EVENTS, [organizationId, limit])
    await recordFacts(client, organizationId, { userId: null, role: null }, rows.map(toFact))
    await client.query(
      `UPDATE notice_webhooks SET events_after = greatest(events_after, coalesce($2, now()) - ${OVERLAP})
       WHERE organization_id = $1`,
      [organizationId, rows.length === limit ? rows.at(-1)?.at : null],
    )
    return rows.length
  })
}

function toFact({ type, topic, at: time, workflowName, source_name: sourceName, ...of }: EventRow) {
  const texts: Record<RunEventType, string> = {
    'run.failed': `A run of ${workflowName} failed: ${of.error_code}`,
    'run.cancelled': `A run of ${workflowName} was cancelled`,
    'approval.waiting': `A payload of ${workflowName} to ${sourceName} waits for approval`,
  }
  const at = time.toISOString()
  const data: RunEvent['data'] = { at, ...of }
  return { type, topic, at, text: texts[type], data }
}
