import type { PoolClient } from 'pg'
import { newId } from './ids.ts'

/** Who did it: a person who is signed in, the operator (`wf`), a service, or a caller who is not signed in. */
export interface AuditActor {
  readonly kind: 'person' | 'operator' | 'service' | 'stranger'
  /** The user of the organization. */
  readonly id?: string | null
  readonly name: string
}

/** One value that a change replaced; without secrets, keys, tokens and passwords. */
export interface AuditChange {
  readonly field: string
  readonly old: unknown
  readonly new: unknown
}

interface AuditedAction {
  /** `<kind>.<verb>`, such as `workflow.saved`. */
  readonly action: string
  readonly target?: { readonly kind: string; readonly id: string | null; readonly name: string | null }
  readonly changes?: readonly AuditChange[]
  readonly requestId?: string
}

/** An entry of the audit log: done by the person of a request, or by another actor. */
export type NewAuditEvent = AuditedAction &
  (
    | {
        readonly principal: {
          readonly organizationId: string
          readonly userId: string
          readonly name: string
          readonly address: string | null
        }
      }
    | { readonly actor: AuditActor; readonly organizationId: string | null; readonly address?: string | null }
  )

/** Longer texts in `changes` are shortened. */
const TEXT_MAX_LENGTH = 2_000

const INSERT_AUDIT_EVENT = {
  name: 'insert_audit_event',
  text: `
INSERT INTO audit_events
  (id, organization_id, actor_kind, actor_id, actor_name, action, target_kind, target_id, target_name, changes, request_id, address)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
}

/** Adds an entry to the audit log, in the transaction of the change that it records. */
export async function recordAuditEvent(client: Pick<PoolClient, 'query'>, event: NewAuditEvent): Promise<void> {
  const { action, target, changes = [], requestId = null } = event
  const by =
    'principal' in event
      ? {
          organizationId: event.principal.organizationId,
          actor: { kind: 'person', id: event.principal.userId, name: event.principal.name },
          address: event.principal.address,
        }
      : event
  await client.query({
    ...INSERT_AUDIT_EVENT,
    values: [
      newId(),
      by.organizationId,
      by.actor.kind,
      by.actor.id ?? null,
      by.actor.name,
      action,
      target?.kind ?? null,
      target?.id ?? null,
      target?.name ?? null,
      JSON.stringify(changes, shortenText),
      requestId,
      by.address ?? null,
    ],
  })
}

/** Whether an action on a thing of the organization is recorded, so that a repeated request does not record it again. */
export async function hasAuditEvent(
  client: Pick<PoolClient, 'query'>,
  organizationId: string,
  targetId: string,
  action: string,
): Promise<boolean> {
  const { rows } = await client.query(
    'SELECT FROM audit_events WHERE organization_id = $1 AND target_id = $2 AND action = $3 LIMIT 1',
    [organizationId, targetId, action],
  )
  return rows.length > 0
}

/** Lists the fields whose values differ, for `changes`. */
export function changedFields<Values extends object>(old: Partial<Values>, next: Values): AuditChange[] {
  return Object.entries(next)
    .map(([field, value]) => ({ field, old: old[field as keyof Values] ?? null, new: (value as unknown) ?? null }))
    .filter((change) => JSON.stringify(change.old) !== JSON.stringify(change.new))
}

/** Shortens long texts, as a replacer of `JSON.stringify`. */
export function shortenText(_key: string, value: unknown): unknown {
  if (typeof value !== 'string' || value.length <= TEXT_MAX_LENGTH) return value
  return `${value.slice(0, TEXT_MAX_LENGTH).toWellFormed()}…`
}
