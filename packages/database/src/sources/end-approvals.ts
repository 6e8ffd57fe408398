import type { Queryable } from '../connection/index.ts'
import type { AuditedBy } from '../organizations/index.ts'

/** Why a payload is declined that waits for an approval, or was approved. An agent reads it: it names no URL. */
const REASONS = {
  url_changed:
    'The URL of the webhook source was changed before the payload was sent. Start again to ask for an approval with the new one.',
  deleted: 'The webhook source was deleted before the payload was sent.',
}

/**
 * Ends the approvals of payloads to a source that were not sent yet, as declined, in the transaction of a deletion, or
 * of an edit that would send them elsewhere than was approved; their runs can be acquired again. The caller has locked
 * the source's row. Resolves to how many.
 */
export async function endApprovalsOfSource(
  client: Queryable,
  { organizationId, sourceId }: { organizationId: string; sourceId: string },
  why: keyof typeof REASONS,
  by: AuditedBy | undefined,
): Promise<number> {
  // As for a decision, sessions are locked before approvals.
  const { rows: open } = await client.query<{ deliveryId: string }>(
    `SELECT approvals.delivery_id AS "deliveryId" FROM approvals
     JOIN starts AS start ON start.id = approvals.run_id AND start.status IN ('queued', 'running', 'waiting')
     JOIN sessions AS session ON session.id = start.session_id
     WHERE approvals.organization_id = $1 AND approvals.source_id = $2 AND approvals.status IN ('waiting', 'approved')
     ORDER BY session.id FOR NO KEY UPDATE OF session`,
    [organizationId, sourceId],
  )
  if (open.length === 0) return 0
  const ids = open.map(({ deliveryId }) => deliveryId)
  // Waits for claims that are under way: the next statement sees their deliveries.
  await client.query('SELECT FROM approvals WHERE delivery_id = ANY ($1::uuid[]) ORDER BY delivery_id FOR UPDATE', [
    ids,
  ])
  const { rows: ended } = await client.query<{ runId: string }>(
    `UPDATE approvals SET status = 'declined', reason = $2, decided_at = now(), decided_by = $3, decided_by_name = $4
     WHERE delivery_id = ANY ($1::uuid[]) AND status IN ('waiting', 'approved')
       AND NOT EXISTS (SELECT FROM deliveries WHERE deliveries.id = approvals.delivery_id)
     RETURNING run_id AS "runId"`,
    [ids, REASONS[why], by?.principal.userId ?? null, by?.principal.name ?? null],
  )
  await client.query(
    `WITH queued AS (
       UPDATE starts SET status = 'queued' WHERE id = ANY ($1::uuid[]) AND status = 'waiting' RETURNING session_id
     )
     UPDATE sessions SET waiting_since = now() WHERE id IN (SELECT session_id FROM queued)`,
    [ended.map(({ runId }) => runId)],
  )
  return ended.length
}
