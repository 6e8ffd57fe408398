import { type NoticeBody, type NoticeKind, WAITING_COUNTED_MAX } from '@workflow-service/contract'
import type { PoolClient } from 'pg'
import { type Connection, type Db, inTransaction, newId } from '../connection/index.ts'
import type { Viewer } from '../organizations/index.ts'
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

/** The body of a new notice. */
export function toBody(organizationId: string, { type, text, data }: Pick<Fact, 'type' | 'text' | 'data'>): NoticeBody {
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
    const counted = `${count.toLocaleString('en')}${count < WAITING_COUNTED_MAX ? '' : '+'}`
    const text = `${counted} ${count === 1 ? 'payload waits' : 'payloads wait'} for approval, the first to ${first.source_name}`
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
