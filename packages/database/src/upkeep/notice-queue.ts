import type { NoticeBody, NoticeOut } from '@workflow-service/contract'
import { type Db, deleteRows, queryRows } from '../connection/index.ts'
import { isDeliveryVisible, isVisible } from '../organizations/index.ts'
import { toBody } from './notices.ts'

/** A notice that its caller sends now. */
export interface DueNotice {
  readonly id: string
  readonly organizationId: string
  readonly userId: string | null
  readonly recipient: string
  readonly body: NoticeBody
  /** With this one. */
  readonly attempts: number
}

const DUE = `id, organization_id AS "organizationId", user_id AS "userId", recipient, body, attempts`

/** Notices of one organization at once: one whose endpoint hangs leaves slots to the others. */
const MAX_OF_ORGANIZATION = 4

/**
 * Takes notices that are due, for a minute: one that is not finished by then is due again. Those by email only if the
 * caller has a mail server. Those of suspended organizations wait, and those of `busy` ones.
 */
export async function takeDueNotices(db: Db, limit: number, hasMail: boolean, busy: readonly string[] = []) {
  const { rows } = await db.pool.query<DueNotice>(
    `UPDATE notices SET attempts = attempts + 1, next_at = now() + interval '1 minute'
     WHERE id = ANY (ARRAY(
       SELECT due.id FROM (
         SELECT DISTINCT organization_id AS id FROM notices
         WHERE status = 'waiting' AND next_at <= now() AND organization_id <> ALL ($3::uuid[])
       ) AS waiting
       JOIN organizations AS organization ON organization.id = waiting.id AND NOT organization.is_suspended
       CROSS JOIN LATERAL (
         SELECT id, next_at FROM notices
         WHERE organization_id = waiting.id AND status = 'waiting' AND next_at <= now() AND ($2 OR user_id IS NULL)
         ORDER BY next_at LIMIT ${MAX_OF_ORGANIZATION} FOR UPDATE SKIP LOCKED
       ) AS due ORDER BY due.next_at LIMIT $1
     )) RETURNING ${DUE}`,
    [limit, hasMail, busy],
  )
  return rows
}

const DELETE_HIDDEN = `
  DELETE FROM notices USING users
  WHERE notices.id = $1 AND users.id = notices.user_id AND users.role = 'member' AND NOT coalesce(
    CASE
      WHEN body->'data'->>'kind' = 'run_failed' THEN (
        SELECT ${isVisible('workflow', 'users.id')} FROM workflows AS workflow
        WHERE workflow.id = (body->'data'->>'id')::uuid
      )
      WHEN body->'data'->>'kind' = 'delivery_not_accepted' THEN (
        SELECT ${isDeliveryVisible('users.id')} FROM deliveries AS delivery
        WHERE delivery.id = (body->'data'->>'newest_id')::uuid
      )
      WHEN body->>'type' = 'notice.approvals' THEN (
        SELECT ${isVisible('workflow', 'users.id')} FROM starts JOIN workflows AS workflow ON workflow.id = starts.workflow_id
        WHERE starts.id = (body->'data'->>'run_id')::uuid
      )
      ELSE true
    END, false)`

/**
 * Deletes a notice for a member who does not see what it is about any more: it may have waited for long. Resolves to
 * whether it did.
 */
export async function deleteHiddenNotice(db: Db, id: string): Promise<boolean> {
  return (await db.pool.query(DELETE_HIDDEN, [id])).rowCount === 1
}

/** Records that a notice was sent, or why not: it is tried again, later each time, until it is an hour old. */
export async function finishNotice(db: Db, id: string, error: string | null): Promise<void> {
  await db.pool.query(
    `UPDATE notices SET error = $2::text,
       status = CASE WHEN $2::text IS NULL THEN 'sent' WHEN created_at < now() - interval '1 hour' THEN 'failed' ELSE 'waiting' END,
       next_at = now() + least(interval '15 minutes', interval '15 seconds' * 2 ^ least(attempts, 10))
     WHERE id = $1 AND status = 'waiting'`,
    [id, error?.slice(0, 1_000) ?? null],
  )
}

/**
 * Records a notice for a test, which only its caller sends at first, after a change of the recipient that is under way.
 * Undefined: there is no such recipient.
 */
export async function recordTestNotice(db: Db, organizationId: string, userId: string | null) {
  const text = 'This is a test: notices reach you here.'
  const body = toBody(organizationId, { type: 'notice.test', text, data: {} })
  const { rows } = await db.pool.query<DueNotice>(
    `INSERT INTO notices (id, organization_id, user_id, recipient, topic, body, attempts, next_at)
     SELECT $1, $2, $3::uuid, recipient, 'test', $4, 1, now() + interval '1 minute' FROM (
       SELECT email AS recipient FROM (
         SELECT email FROM users
         WHERE organization_id = $2 AND id = $3::uuid AND role IS NOT NULL AND deactivated_at IS NULL FOR SHARE
       ) AS person
       UNION ALL SELECT url FROM (
         SELECT url FROM notice_webhooks WHERE organization_id = $2 AND $3::uuid IS NULL FOR SHARE
       ) AS webhook
     ) AS to_whom RETURNING ${DUE}`,
    [body.id, organizationId, userId, JSON.stringify(body)],
  )
  return rows[0]
}

/** The newest 50 notices of the organization. */
export async function listNotices(db: Db, organizationId: string): Promise<NoticeOut[]> {
  return await queryRows<NoticeOut>(
    db,
    `SELECT id, created_at, CASE WHEN user_id IS NULL THEN 'webhook' ELSE 'email' END AS channel, recipient,
       body->>'text' AS text, status, attempts, error
     FROM notices WHERE organization_id = $1 ORDER BY created_at DESC, id DESC LIMIT 50`,
    [organizationId],
  )
}

/** Deletes notices that are older than 30 days. */
export async function deleteOldNotices(db: Db, limit: number): Promise<number> {
  return await deleteRows(db, { table: 'notices', where: `created_at < now() - interval '30 days'` }, limit)
}
