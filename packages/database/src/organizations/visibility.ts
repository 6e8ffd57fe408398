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

/**
 * Returns the condition that the viewer sees an entry `delivery` of the log: what belongs to no run, and the payloads
 * of runs of workflows that the viewer sees. `isJoined`: the statement joins the `workflow` of the run itself.
 */
export function isDeliveryVisible(memberId: string, { isJoined = false } = {}): string {
  const ofWorkflow = isVisible('workflow', memberId)
  const ofRun = `(
    SELECT ${ofWorkflow} FROM starts JOIN workflows AS workflow ON workflow.id = starts.workflow_id
    WHERE starts.id = delivery.run_id
  )`
  return `(${memberId}::uuid IS NULL OR delivery.run_id IS NULL OR ${isJoined ? ofWorkflow : ofRun})`
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
