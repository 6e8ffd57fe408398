import type { NoticeBody, NoticeKind, NoticeOut, RunEventType } from '@workflow-service/contract'
import type { PoolClient } from 'pg'
import { type Connection, type Db, deleteRows, inTransaction, newId, queryRows } from '../connection/index.ts'
import { type AuditedBy, changedFields, recordAuditEvent, secretChanges, type Viewer } from '../organizations/index.ts'
import type { AuditedRequest } from '../people/index.ts'
import { summarizeWaitingApprovals } from '../runs/index.ts'
import { readSourceState } from '../sources/index.ts'
import { readAttention } from './attention.ts'

/** Something that recipients get a notice of. */
interface Fact {
  readonly kind: NoticeKind
  /** Of facts with one topic, a recipient gets at most one notice an hour, and only of one that is newer. */
  readonly topic: string
  readonly type: NoticeBody['type']
  readonly text: string
  readonly at: string
  readonly data: NoticeBody['data']
}

interface Recipient {
  /** Null: the webhook. */
  readonly userId: string | null
  readonly kinds: readonly NoticeKind[] | null
  readonly role: string | null
}

/** By source: the same for all recipients. */
type SourceStates = Map<string, Awaited<ReturnType<typeof readSourceState>>>

const KEY_WARNING_DAYS = 7
const MAX_SOURCES = 20
/** Notices of one look: many are about one incident. */
const MAX_NEW = 50

/** SQL for the advisory lock under which the notices of the organization $1 are recorded. */
export const NOTICES_LOCK = `hashtextextended('notices' || $1, 0)`

/** The organizations with a recipient of notices, except suspended ones. */
export async function listNoticeOrganizations(db: Db, hasMail: boolean): Promise<string[]> {
  const { rows } = await db.pool.query<{ id: string }>(
    `SELECT id FROM organizations WHERE NOT is_suspended AND id IN (
       SELECT organization_id FROM notice_webhooks
       UNION SELECT organization_id FROM users WHERE $1 AND cardinality(notice_kinds) > 0 AND deactivated_at IS NULL
     )`,
    [hasMail],
  )
  return rows.map(({ id }) => id)
}

/**
 * Records the notices that are due: failures by source and reason, payloads that wait, paused and failing sources, keys
 * that expire. One process at a time does it for an organization. Resolves to how many.
 */
export async function recordNotices(db: Db, organizationId: string, hasMail: boolean): Promise<number> {
  return await inTransaction(db, async (client) => {
    const locked = await client.query<{ isLocked: boolean }>(
      `SELECT pg_try_advisory_xact_lock(${NOTICES_LOCK}) AS "isLocked"`,
      [organizationId],
    )
    if (!locked.rows[0]?.isLocked) return 0
    const { rows: recipients } = await client.query<Recipient>(
      `SELECT id AS "userId", notice_kinds AS kinds, role FROM users
       WHERE organization_id = $1 AND $2 AND cardinality(notice_kinds) > 0 AND deactivated_at IS NULL AND role IS NOT NULL
       UNION ALL SELECT NULL, NULL, 'admin' FROM notice_webhooks WHERE organization_id = $1`,
      [organizationId, hasMail],
    )
    const states: SourceStates = new Map()
    const factsOf = new Map<string | null, readonly Fact[]>()
    // All admins see the same.
    const memberIdOf = ({ role, userId }: Recipient) => (role === 'member' ? userId : null)
    // Before the recipients are locked.
    for (const memberId of new Set(recipients.map(memberIdOf))) {
      factsOf.set(memberId, await readFacts(client, { organizationId, memberId }, states))
    }
    let count = 0
    for (const each of recipients) {
      const seen = factsOf.get(memberIdOf(each)) ?? []
      const wanted = seen.filter(({ kind }) => each.kinds?.includes(kind) ?? true).slice(0, MAX_NEW)
      count += await recordFacts(client, organizationId, each, wanted)
    }
    return count
  })
}

/**
 * Records facts, each of another topic, for a recipient, unless it got a notice of the topic in the last hour or since.
 * Resolves to how many: none for a person who is being changed, or has another role or no access by now, and for a
 * webhook that is being changed, or was removed. A change waits for the end of the transaction then, and finds the
 * notices that it ends, or moves to another address.
 */
export async function recordFacts(
  client: PoolClient,
  organizationId: string,
  { userId, role }: Omit<Recipient, 'kinds'>,
  facts: readonly Omit<Fact, 'kind'>[],
): Promise<number> {
  if (facts.length === 0) return 0
  const notices = facts.map(({ topic, at, ...body }) => ({ topic, at, body: toBody(organizationId, body) }))
  const { rowCount } = await client.query(
    `INSERT INTO notices (id, organization_id, user_id, recipient, topic, body)
     SELECT (fact.body ->> 'id')::uuid, $1, $2, to_whom.recipient, fact.topic, fact.body
     FROM json_to_recordset($3) AS fact (topic text, at timestamptz, body json)
     CROSS JOIN (
       SELECT email AS recipient FROM (
         SELECT email FROM users WHERE id = $2 AND role = $4 AND deactivated_at IS NULL FOR SHARE SKIP LOCKED
       ) AS person
       UNION ALL SELECT url FROM (
         SELECT url FROM notice_webhooks WHERE organization_id = $1 AND $2::uuid IS NULL FOR SHARE SKIP LOCKED
       ) AS webhook
     ) AS to_whom
     WHERE NOT EXISTS (
       SELECT FROM notices WHERE organization_id = $1 AND topic = fact.topic AND user_id IS NOT DISTINCT FROM $2::uuid
         AND created_at > least(now() - interval '1 hour', fact.at)
     )`,
    [organizationId, userId, JSON.stringify(notices), role],
  )
  return rowCount ?? 0
}

function toBody(organizationId: string, { type, text, data }: Pick<Fact, 'type' | 'text' | 'data'>): NoticeBody {
  return { id: newId(), type, organization_id: organizationId, created_at: new Date().toISOString(), text, data }
}

async function readFacts(client: PoolClient, viewer: Viewer, states: SourceStates): Promise<Fact[]> {
  const db = { pool: client }
  const { organizationId, memberId } = viewer
  const facts: Fact[] = []
  const groups = await readAttention(db, viewer)
  for (const { kind, id, title, code, status, reason, newest_id: newestId, at, count, is_more: isMore } of groups) {
    const what = kind === 'run_failed' ? `${title} failed` : `${title}: ${reason}`
    facts.push({
      kind: 'failures',
      topic: `failures ${kind} ${id} ${code} ${status}`,
      type: 'notice.failures',
      text: `${count}${isMore ? '+' : ''} × ${what}${kind === 'run_failed' ? `: ${reason}` : ''}`,
      at,
      data: { kind, id, name: title, code, status, count, newest_id: newestId },
    })
  }
  const waiting = await summarizeWaitingApprovals(db, viewer)
  if (waiting) {
    const { count, newest_at: at, first } = waiting
    const text = `${count} ${count === 1 ? 'payload waits' : 'payloads wait'} for approval, the first to ${first.source_name}`
    const data = { count, delivery_id: first.delivery_id, run_id: first.run_id }
    facts.push({ kind: 'approvals', topic: 'approvals', type: 'notice.approvals', text, at, data })
  }
  facts.push(...(await readSourceFacts(db, organizationId, groups, states)))
  return memberId === null ? [...facts, ...(await readKeyFacts(db, organizationId))] : facts
}

async function readSourceFacts(
  db: Connection,
  organizationId: string,
  groups: Awaited<ReturnType<typeof readAttention>>,
  states: SourceStates,
): Promise<Fact[]> {
  const { rows: paused } = await db.pool.query<{ id: string; name: string; at: Date; by: string | null }>(
    `SELECT id, name, paused_at AS at, paused_by_name AS by FROM webhook_sources
     WHERE organization_id = $1 AND paused_at IS NOT NULL AND deleted_at IS NULL LIMIT ${MAX_SOURCES}`,
    [organizationId],
  )
  const facts = paused.map(({ id, name, at, by }): Fact => {
    const text = `${name} was paused by ${by ?? 'the operator'}: its payloads wait, up to 3 days`
    const fact = { kind: 'sources', topic: `paused ${id}`, type: 'notice.source_paused' } as const
    return { ...fact, text, at: at.toISOString(), data: { id, name } }
  })
  const failed = groups.filter(({ kind }) => kind === 'delivery_not_accepted')
  for (const [id, [group]] of [...Map.groupBy(failed, (each) => each.id)].slice(0, MAX_SOURCES)) {
    const state = states.get(id) ?? (await readSourceState(db, organizationId, id))
    states.set(id, state)
    const { failing } = state
    if (!failing || !group) continue
    const text = `${group.title} is failing: ${failing.count} payloads in a row were not accepted since ${inUtc(failing.since)}`
    const data = { id, name: group.title, ...failing }
    facts.push({ kind: 'sources', topic: `failing ${id}`, type: 'notice.source_failing', text, at: group.at, data })
  }
  return facts
}

const inUtc = (time: string): string => `${time.slice(0, 16).replace('T', ' ')} UTC`

async function readKeyFacts(db: Connection, organizationId: string): Promise<Fact[]> {
  const { rows } = await db.pool.query<{ id: string; name: string; expiresAt: Date; at: Date }>(
    `SELECT id, name, expires_at AS "expiresAt", expires_at - interval '${KEY_WARNING_DAYS} days' AS at FROM api_keys
     WHERE organization_id = $1 AND revoked_at IS NULL
       AND expires_at > now() AND expires_at <= now() + interval '${KEY_WARNING_DAYS} days' LIMIT 50`,
    [organizationId],
  )
  return rows.map(({ id, name, expiresAt, at }) => {
    const text = `The API key ${name} expires on ${inUtc(expiresAt.toISOString())}`
    const data = { id, name, expires_at: expiresAt.toISOString() }
    return { kind: 'keys', topic: `key ${id}`, type: 'notice.key_expiring', text, at: at.toISOString(), data }
  })
}

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
export async function deleteNoticeWebhook(db: Db, organizationId: string, by: AuditedBy): Promise<void> {
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
