import type { Role } from '@workflow-service/contract'

/** Who reads: a person in an organization. */
export interface Viewer {
  readonly organizationId: string
  /** A member, who sees only some workflows and what follows them; null: an admin or owner, who sees everything. */
  readonly memberId: string | null
}

/** Returns what a person may see. */
export function viewerOf(person: {
  readonly organizationId: string
  readonly role: Role
  readonly userId: string
}): Viewer {
  return { organizationId: person.organizationId, memberId: person.role === 'member' ? person.userId : null }
}

/**
 * Returns the condition that the viewer sees a workflow, for the statement's parameter `$n` = `viewer.memberId`. The scalar
 * subquery finds its row by key; PostgreSQL may evaluate EXISTS by reading the whole table.
 */
export function isVisible(workflow: string, memberId: string): string {
  return `(${workflow}.deleted_at IS NULL AND (${memberId}::uuid IS NULL OR ${workflow}.scope = 'company_wide'
    OR (SELECT true FROM workflow_users WHERE workflow_id = ${workflow}.id AND user_id = ${memberId})))`
}

/** The expression for the name of a user: the name, or the email address without one. */
export const USER_NAME = `coalesce(nullif(trim(concat_ws(' ', nullif(users.first_name, ''), nullif(users.last_name, ''))), ''),
  (SELECT accounts.name FROM accounts WHERE accounts.id = users.account_id), users.email)`

/** A row whose columns are named as in the contract; pg returns times as dates. */
export type RowOf<Out> = { readonly [Name in keyof Out]: Out[Name] | Date }

/** Returns a row with its times as texts. */
export function toWire<Out extends object>(row: RowOf<Out>): Out {
  const entries = Object.entries<unknown>(row).map(([name, value]) => [
    name,
    value instanceof Date ? value.toISOString() : value,
  ])
  return Object.fromEntries(entries) as Out
}

/** A position in a list that is sorted by time and id, newest first. */
export interface TimePosition {
  readonly createdAt: Date
  readonly id: string
}

const FIRST_ID = '00000000-0000-0000-0000-000000000000'
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/**
 * Returns time and id for the condition `(created_at, id) < ($n, $m)`: entries after `after` in the list and before `until`. One
 * condition for both, because with a second one PostgreSQL may begin to read the index there, and read all newer entries.
 */
export function beforePosition(after: TimePosition | undefined, until?: Date): readonly [Date | 'infinity', string] {
  if (after && (!until || after.createdAt < until)) return [after.createdAt, after.id]
  return until ? [until, FIRST_ID] : ['infinity', LAST_ID]
}
