import type { AuditEventOut } from '@workflow-service/contract'
import { type Db, inTransaction, type PrismaDb, type Queryable } from '../connection/index.ts'
import type { AuditEvent, Prisma } from '../generated/client.ts'
import type { LimitedByQuotas } from './quotas.ts'
import { assertRole, type AuditPrincipal } from './roles.ts'

/** What the audit log has, by kind: an action is `<kind>.<verb>`. */
const AUDITED_VERBS = {
  access: ['refused'],
  account: ['confirm_failed', 'confirmed', 'password_changed', 'saved', 'sign_in_failed', 'signed_in', 'signed_out'],
  api_key: ['created', 'revoked'],
  attention: ['done'],
  auto_run: ['saved'],
  budget: ['nearly_spent'],
  case: ['deleted', 'saved'],
  delivery: ['approved', 'declined', 'deleted', 'expired', 'resent'],
  evaluation: ['started', 'stopped'],
  file: ['deleted', 'saved'],
  instructions: ['saved'],
  link: ['accepted'],
  lookup: ['deleted', 'saved', 'tested'],
  manifest: ['applied'],
  model_key: ['deleted', 'saved'],
  notice_webhook: ['saved'],
  organization: ['created', 'deleted', 'saved'],
  queue: ['cancelled'],
  resend_job: ['started', 'stopped'],
  run: ['cancelled', 'deleted'],
  session: ['closed', 'opened'],
  setup: ['completed', 'link_created'],
  trigger: ['deleted', 'saved'],
  user: ['created', 'erased', 'link_created', 'removed', 'saved', 'signed_out'],
  webhook_source: ['deleted', 'paused', 'resumed', 'saved', 'tested'],
  workflow: ['activated', 'created', 'deactivated', 'deleted', 'restored', 'saved', 'started'],
  workflow_agent: ['saved'],
  workflow_users: ['saved'],
} as const
type AuditedVerbs = typeof AUDITED_VERBS
export type AuditAction = { [Kind in keyof AuditedVerbs]: `${Kind}.${AuditedVerbs[Kind][number]}` }[keyof AuditedVerbs]
export const AUDIT_ACTIONS = Object.entries(AUDITED_VERBS).flatMap(([kind, verbs]) =>
  verbs.map((verb) => `${kind}.${verb}`),
)

/** Who did it: a person who is signed in, the operator (`wf`), a service, or a caller who is not signed in. */
export interface AuditActor {
  readonly kind: 'person' | 'operator' | 'service' | 'stranger'
  /** The user of the organization. */
  readonly id?: string | null
  readonly name: string
}

/** The operator, who uses `wf`. */
export const OPERATOR: AuditActor = { kind: 'operator', name: 'operator' }

/** Who makes a change, and with which request, for its audit event. */
export interface AuditedBy extends LimitedByQuotas {
  readonly principal: AuditPrincipal
  readonly requestId: string | null
}

/** One value that a change replaced; without secrets, keys, tokens and passwords. */
export interface AuditChange {
  readonly field: string
  readonly old: unknown
  readonly new: unknown
}

interface AuditedAction {
  readonly action: AuditAction
  readonly target?: { readonly kind: string; readonly id: string | null; readonly name: string | null }
  readonly changes?: readonly AuditChange[]
  readonly requestId?: string | null
}

/** An entry of the audit log: done by the person of a request, or by another actor. */
export type NewAuditEvent = AuditedAction &
  (
    | { readonly principal: AuditPrincipal }
    | { readonly actor: AuditActor; readonly organizationId: string | null; readonly address?: string | null }
  )

/** Longer texts in `changes` are shortened, and longer values of other kinds: the filters of a trigger have 256 KiB. */
const TEXT_MAX_LENGTH = 2_000
const JSON_MAX_LENGTH = 16_000

/**
 * SQL for the id of a new entry: UUIDv7 by the database's clock to 0.25 µs. The clocks of the processes that add
 * entries may differ, and both the list and `wf apply`, which looks for what people changed since the last one, go by
 * the ids.
 */
export const NEW_AUDIT_EVENT_ID = `(
  overlay(
    lpad(to_hex(floor(4096000 * extract(epoch FROM clock_timestamp()))::bigint), 15, '0') PLACING '7' FROM 13 FOR 0
  ) || right(replace(gen_random_uuid()::text, '-', ''), 16)
)::uuid`

const INSERT_AUDIT_EVENT = {
  name: 'insert_audit_event',
  text: `
INSERT INTO audit_events
  (id, organization_id, actor_kind, actor_id, actor_name, action, target_kind, target_id, target_name, changes, request_id, address)
VALUES (${NEW_AUDIT_EVENT_ID}, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
}

/**
 * Runs a statement that changes one row of the organization ($1) with this id ($2) and returns its `name`, and records
 * the change. False if there is no such row.
 */
export async function changeAudited(
  db: Db,
  statement: string,
  { action, kind, id, ...by }: AuditedBy & { readonly action: AuditAction; readonly kind: string; readonly id: string },
): Promise<boolean> {
  return await inTransaction(db, async (client) => {
    const { rows } = await client.query<{ name: string }>(statement, [by.principal.organizationId, id])
    if (!rows[0]) return false
    await recordAuditEvent(client, { ...by, action, target: { kind, id, name: rows[0].name } })
    return true
  })
}

export function operatorOf(organizationId: string): AuditedBy {
  return { principal: { organizationId, userId: null, name: OPERATOR.name, address: null }, requestId: null }
}

/** Who the audit log says has made a change. */
export function actorOf({ userId, name }: AuditPrincipal): AuditActor {
  return userId === null ? OPERATOR : { kind: 'person', id: userId, name }
}

/**
 * Adds an entry to the audit log, in the transaction of the change that it records. So that none is missed, this is
 * also where the role of the person is checked once the change waits for nothing any more.
 * @throws RoleLostError
 */
export async function recordAuditEvent(client: Queryable, event: NewAuditEvent): Promise<void> {
  if ('principal' in event) await assertRole(client, event.principal)
  const { action, target, changes = [], requestId = null } = event
  const { organizationId, actor, address } =
    'principal' in event ? { ...event.principal, actor: actorOf(event.principal) } : event
  await client.query({
    ...INSERT_AUDIT_EVENT,
    values: [
      organizationId,
      actor.kind,
      actor.id ?? null,
      actor.name,
      action,
      target?.kind ?? null,
      target?.id ?? null,
      target?.name ?? null,
      JSON.stringify(shortenChanges(changes)),
      requestId,
      address ?? null,
    ],
  })
}

/** Lists the fields whose values differ, for `changes`. */
export function changedFields<Values extends object>(old: Partial<Values>, next: Values): AuditChange[] {
  return Object.entries(next)
    .map(([field, value]) => ({ field, old: old[field as keyof Values] ?? null, new: (value as unknown) ?? null }))
    .filter((change) => !isSameValue(change.old, change.new))
}

/** The change of a secret, whose value is not recorded: null removes it; undefined keeps it, which is no change. */
export function secretChanges(field: string, secret: Buffer | null | undefined): AuditChange[] {
  return secret === undefined ? [] : [{ field, old: null, new: secret === null ? 'removed' : 'replaced' }]
}

/** Compares texts as they are: files are large. */
function isSameValue(one: unknown, other: unknown): boolean {
  if (typeof one === 'string' || typeof other === 'string') return one === other
  return JSON.stringify(one) === JSON.stringify(other)
}

/** Shortens long values: of one that is no text, the beginning of its JSON is left. */
export function shortenChanges(changes: readonly AuditChange[]): AuditChange[] {
  return changes.map(({ field, old, new: next }) => ({
    field: shorten(field, TEXT_MAX_LENGTH),
    old: shortenValue(old),
    new: shortenValue(next),
  }))
}

function shortenValue(value: unknown): unknown {
  const shortenText = (_key: string, each: unknown) =>
    typeof each === 'string' ? shorten(each, TEXT_MAX_LENGTH) : each
  const json = JSON.stringify(value ?? null, shortenText)
  return json.length > JSON_MAX_LENGTH ? shorten(json, JSON_MAX_LENGTH) : JSON.parse(json)
}

function shorten(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength).toWellFormed()}…`
}

/** Which entries to list, newest first. Absent: all. */
export interface AuditEventQuery {
  readonly limit: number
  readonly ids?: readonly string[]
  /** Lists entries before this id. */
  readonly before?: string
  readonly actorId?: string
  readonly targetId?: string
  /** An action, or the beginning of actions that ends with a dot. */
  readonly action?: string
  readonly since?: Date
  readonly until?: Date
}

/** Lists entries of an organization's audit log, newest first. */
export async function listAuditEvents(
  db: PrismaDb,
  organizationId: string,
  { limit, ids, before, actorId, targetId, action, since, until }: AuditEventQuery,
): Promise<AuditEventOut[]> {
  const where: Prisma.AuditEventWhereInput = {
    organizationId,
    ...(actorId === undefined ? {} : { actorId }),
    ...(targetId === undefined ? {} : { targetId }),
    AND: [
      ...(ids === undefined ? [] : [{ id: { in: [...ids] } }]),
      ...(before === undefined ? [] : [{ id: { lt: before } }]),
      // Ids are made a little after `at`; the range of ids only keeps the search short.
      ...(since ? [{ at: { gte: since } }, { id: { gte: firstIdAt(since.getTime() - 60_000) } }] : []),
      ...(until ? [{ at: { lt: until } }, { id: { lt: firstIdAt(until.getTime() + 60_000) } }] : []),
    ],
  }
  const read = (condition: Prisma.AuditEventWhereInput) =>
    db.prisma.auditEvent.findMany({ where: { ...where, ...condition }, orderBy: { id: 'desc' }, take: limit })
  if (action === undefined) return (await read({})).map(toOut)
  // One look-up in the index for each action of the kind.
  const actions = action.endsWith('.') ? AUDIT_ACTIONS.filter((each) => each.startsWith(action)) : [action]
  const found = await Promise.all(actions.map((each) => read({ action: each })))
  const newestFirst = found.flat().toSorted((a, b) => (a.id < b.id ? 1 : -1))
  return newestFirst.slice(0, limit).map(toOut)
}

function toOut(event: AuditEvent): AuditEventOut {
  const { id, at, actorKind, actorId, actorName, action, targetKind, targetId, targetName, changes, ...rest } = event
  return {
    id,
    at: at.toISOString(),
    actor: { kind: actorKind as AuditActor['kind'], id: actorId, name: actorName },
    action,
    target: targetKind === null ? null : { kind: targetKind, id: targetId, name: targetName ?? '' },
    changes: changes as unknown as AuditEventOut['changes'],
    request_id: rest.requestId,
    address: rest.address,
  }
}

/** The lowest UUIDv7 of a point in time. */
export function firstIdAt(timeMs: number): string {
  const hex = Math.max(0, timeMs).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`
}
