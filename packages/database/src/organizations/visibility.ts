import type { Role } from '@workflow-service/contract'
import { type Connection, queryRows } from '../connection/index.ts'

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
 * Returns the condition that the viewer sees a workflow, for the statement's parameter `$n` = `viewer.memberId`. The
 * scalar subquery finds its row by key; PostgreSQL may evaluate EXISTS by reading the whole table.
 */
export function isVisible(workflow: string, memberId: string): string {
  return `(${workflow}.deleted_at IS NULL AND ${includesViewer(workflow, memberId)})`
}

function includesViewer(workflow: string, memberId: string): string {
  return `(${memberId}::uuid IS NULL OR ${workflow}.scope = 'company_wide'
    OR (SELECT true FROM workflow_users WHERE workflow_id = ${workflow}.id AND user_id = ${memberId}))`
}

/** Runs a query of what a viewer sees: $1 is the organization and $2 the member, then come the values. */
export async function queryVisible<Out extends object>(
  db: Connection,
  { organizationId, memberId }: Viewer,
  query: string,
  ...values: unknown[]
): Promise<Out[]> {
  return await queryRows<Out>(db, query, [organizationId, memberId, ...values])
}

/** The newest runs of a session that are checked. An agent reads far fewer earlier runs. */
const MAX_RUNS_CHECKED = 1_000

/**
 * Returns the condition that the viewer sees a session: a member sees no session with a run of a workflow that the
 * member cannot see, because the agent of a run reads what the earlier runs of its session did. A workflow that is
 * being deleted still counts as before, so that its session neither appears nor disappears meanwhile.
 */
export function isSessionVisible(session: string, memberId: string): string {
  return `(${memberId}::uuid IS NULL OR (
    SELECT true FROM (
      SELECT workflow_id FROM starts WHERE session_id = ${session}.id ORDER BY number DESC LIMIT ${MAX_RUNS_CHECKED}
    ) AS run
    JOIN workflows AS of_session ON of_session.id = run.workflow_id
    WHERE ${includesViewer('of_session', memberId)} IS NOT TRUE LIMIT 1
  ) IS NULL)`
}

/** The expression for the name of a user: the name, or the email address without one. */
export const USER_NAME = `coalesce(nullif(trim(concat_ws(' ', nullif(users.first_name, ''), nullif(users.last_name, ''))), ''),
  (SELECT accounts.name FROM accounts WHERE accounts.id = users.account_id), users.email)`

/** The fields from which Prisma's reads make the name of a user. */
export const USER_NAME_FIELDS = {
  firstName: true,
  lastName: true,
  email: true,
  account: { select: { name: true } },
} as const

export interface NamedUser {
  readonly firstName: string
  readonly lastName: string
  readonly email: string
  readonly account: { readonly name: string } | null
}

/** As USER_NAME. */
export function userName({ firstName, lastName, email, account }: NamedUser): string {
  return `${firstName} ${lastName}`.trim() || (account?.name ?? email)
}
