import type { NoticeKind, RunEventType } from '@workflow-service/contract'
import type { PoolClient } from 'pg'
import { type Db, inTransaction } from '../connection/index.ts'
import { type AuditedBy, changedFields, recordAuditEvent, secretChanges } from '../organizations/index.ts'
import type { AuditedRequest } from '../people/index.ts'

/** The notices that a person gets by email. */
export async function readNoticeKinds(db: Db, organizationId: string, userId: string): Promise<NoticeKind[]> {
  const { rows } = await db.pool.query<{ kinds: NoticeKind[] | null }>(
    'SELECT notice_kinds AS kinds FROM users WHERE organization_id = $1 AND id = $2',
    [organizationId, userId],
  )
  return rows[0]?.kinds ?? []
}

/** Saves of what the person gets notices by email, with an audit event if that changes. */
export async function saveNoticeKinds(db: Db, kinds: readonly NoticeKind[], request: AuditedRequest): Promise<void> {
  const { organizationId, userId, accountId, name } = request.principal
  await inTransaction(db, async (client) => {
    const { rows } = await client.query<{ old: NoticeKind[] }>(
      `UPDATE users SET notice_kinds = $3
       FROM (SELECT id, notice_kinds FROM users WHERE organization_id = $1 AND id = $2 FOR NO KEY UPDATE) AS before
       WHERE users.id = before.id AND before.notice_kinds <> $3 RETURNING before.notice_kinds AS old`,
      [organizationId, userId, kinds],
    )
    if (!rows[0]) return
    const target = { kind: 'account', id: accountId, name }
    const changes = [{ field: 'notices', old: rows[0].old, new: kinds }]
    await recordAuditEvent(client, { ...request, action: 'account.saved', target, changes })
  })
}

/** Where the notices of an organization are sent. */
export interface NoticeWebhook {
  readonly url: string
  /** Encrypted. */
  readonly signingSecret: Buffer | null
  /** The events that it gets beside notices. */
  readonly events: RunEventType[]
}

const FIND_WEBHOOK = `SELECT url, signing_secret AS "signingSecret", events FROM notice_webhooks WHERE organization_id = $1`

export async function findNoticeWebhook(db: Db, organizationId: string): Promise<NoticeWebhook | undefined> {
  return (await db.pool.query<NoticeWebhook>(FIND_WEBHOOK, [organizationId])).rows[0]
}

async function lockNoticeWebhook(client: PoolClient, organizationId: string): Promise<NoticeWebhook | undefined> {
  return (await client.query<NoticeWebhook>(`${FIND_WEBHOOK} FOR UPDATE`, [organizationId])).rows[0]
}

/**
 * Saves it with its audit event. `signingSecret`, `events`: undefined keeps what is stored. The first events are of
 * what happens from now on. False, and nothing is saved, if the secret to keep is not that of `seen`: it was entered
 * for another URL.
 */
export async function saveNoticeWebhook(
  db: Db,
  organizationId: string,
  { url, signingSecret, events }: Pick<NoticeWebhook, 'url'> & Partial<NoticeWebhook>,
  seen: NoticeWebhook | undefined,
  by: AuditedBy | undefined,
): Promise<boolean> {
  return await inTransaction(db, async (client) => {
    const old = await lockNoticeWebhook(client, organizationId)
    const { rowCount } = await client.query(
      `INSERT INTO notice_webhooks (organization_id, url, signing_secret, events) VALUES ($1, $2, $3, coalesce($5::text[], '{}'))
       ON CONFLICT (organization_id) DO UPDATE SET url = $2, events = coalesce($5::text[], notice_webhooks.events),
         events_after = CASE WHEN notice_webhooks.events = '{}' THEN now() ELSE notice_webhooks.events_after END,
         signing_secret = CASE WHEN $4 THEN notice_webhooks.signing_secret ELSE $3 END
       WHERE NOT $4 OR notice_webhooks.signing_secret IS NOT DISTINCT FROM $6::bytea`,
      [
        organizationId,
        url,
        signingSecret ?? null,
        signingSecret === undefined,
        events ?? null,
        seen?.signingSecret ?? null,
      ],
    )
    if (rowCount === 0) return false
    if (by) await recordWebhookEvent(client, by, old, { url, signingSecret, events: events ?? old?.events ?? [] })
    return true
  })
}

/** Ends the notices to the webhook, also those that wait, with an audit event. */
export async function deleteNoticeWebhook(db: Db, by: AuditedBy): Promise<void> {
  const { organizationId } = by.principal
  await inTransaction(db, async (client) => {
    const old = await lockNoticeWebhook(client, organizationId)
    await client.query('DELETE FROM notice_webhooks WHERE organization_id = $1', [organizationId])
    const waiting = `organization_id = $1 AND user_id IS NULL AND status = 'waiting'`
    await client.query(`DELETE FROM notices WHERE ${waiting}`, [organizationId])
    await recordWebhookEvent(client, by, old, undefined)
  })
}

/** Records what changed, without the path: that of a Slack webhook is a secret. Next, undefined keeps the secret. */
async function recordWebhookEvent(
  client: PoolClient,
  by: AuditedBy,
  old: NoticeWebhook | undefined,
  next: (Omit<NoticeWebhook, 'signingSecret'> & Partial<NoticeWebhook>) | undefined,
): Promise<void> {
  const shown = (webhook: Pick<NoticeWebhook, 'url' | 'events'> | undefined) => ({
    host: webhook ? new URL(webhook.url).origin : null,
    events: webhook?.events ?? [],
  })
  const [before, after] = [shown(old), shown(next)]
  const hasOtherPath = before.host === after.host && old?.url !== next?.url
  const isSecretKept = !next?.signingSecret && !old?.signingSecret
  const changes = [
    ...changedFields<object>(before, after),
    ...(hasOtherPath ? [{ field: 'path', old: null, new: 'replaced' }] : []),
    ...secretChanges('signing_secret', isSecretKept ? undefined : next?.signingSecret),
  ]
  if (changes.length === 0) return
  const target = { kind: 'organization', id: by.principal.organizationId, name: null }
  await recordAuditEvent(client, { ...by, action: 'notice_webhook.saved', target, changes })
}
