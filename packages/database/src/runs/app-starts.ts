import type { TraceContext } from '@workflow-service/contract'
import {
  column,
  type Db,
  deriveId,
  insertMissing,
  inTransaction,
  type Queryable,
  runStatement,
  statement,
} from '../connection/index.ts'
import {
  type AuditedBy,
  type AuditPrincipal,
  isSessionVisible,
  isVisible,
  recordAuditEvent,
  type Viewer,
  viewerOf,
} from '../organizations/index.ts'
import type { EditingPerson } from '../workflows/index.ts'
import { JOIN_API_TRIGGER, type StartRefusal, WORKFLOW_REFUSALS, WORKFLOW_RULES } from './starts.ts'

/** A start by a person in the application, or by the operator. */
export interface AppStart {
  readonly workflowId: string
  readonly principal: EditingPerson | (AuditPrincipal & { readonly userId: null })
  readonly requestId: string
  /** Chosen by the caller: a repeated request starts nothing new. */
  readonly runId: string
  /** The session to start in; null for a new one. */
  readonly sessionId: string | null
  /** Trimmed, 1 to 10,000 characters. */
  readonly context: string
  /** The trace that the run continues. */
  readonly trace?: TraceContext | null
}

/** The result of a start. `replayed`: the run was started before, by the same person with the same values. */
export type AppStartOutcome =
  | { readonly kind: 'accepted' | 'replayed'; readonly sessionId: string }
  | { readonly kind: Exclude<StartRefusal, 'idempotency_conflict'> | 'organization_suspended' | 'id_taken' }

const FIND_START = `
  SELECT organization_id = $1 AND workflow_id = $3 AND session_id = $4 AND context = $5 AND user_id IS NOT DISTINCT FROM $6 AS "isSame"
  FROM starts WHERE id = $2`

const RECORD_APP_START = statement(
  'runs/record-app-start',
  { kind: column.text<AppStartOutcome['kind']>(), name: column.text() },
  {
    WORKFLOW_REFUSALS,
    JOIN_API_TRIGGER,
    IS_SESSION_VISIBLE: isSessionVisible('session', '$9'),
    IS_VISIBLE: isVisible('workflow', '$9'),
  },
)

/** Checks a start by the rules of the public API and records it, with its audit event. `accepted` means committed. */
export async function recordAppStart(db: Db, start: AppStart): Promise<AppStartOutcome> {
  return await insertMissing(() => record(db, start))
}

async function record(
  db: Db,
  { runId, workflowId, context, principal, requestId, trace, ...start }: AppStart,
): Promise<AppStartOutcome> {
  const { organizationId, userId } = principal
  // Derived, so that a repeated request names the same new session.
  const sessionId = start.sessionId ?? deriveId('app session', organizationId, runId)
  return await inTransaction(db, async (client): Promise<AppStartOutcome> => {
    const known = [organizationId, runId, workflowId, sessionId, context, userId]
    const [earlier] = (await client.query<{ isSame: boolean }>(FIND_START, known)).rows
    if (earlier) return earlier.isSame ? { kind: 'replayed', sessionId } : { kind: 'id_taken' }
    const lock = 'SELECT FROM sessions WHERE organization_id = $1 AND id = $2 FOR NO KEY UPDATE'
    if (start.sessionId !== null) await client.query(lock, [organizationId, sessionId])
    const { rows } = await runStatement({ pool: client }, RECORD_APP_START, [
      organizationId,
      runId,
      workflowId,
      start.sessionId === null,
      sessionId,
      context,
      userId,
      requestId,
      principal.userId === null ? null : viewerOf(principal).memberId,
      trace?.traceparent ?? null,
      trace?.tracestate ?? null,
    ])
    const { kind, name } = rows[0] ?? { kind: 'workflow_not_found', name: '' }
    if (kind !== 'accepted') return { kind } as AppStartOutcome
    await recordStarted(client, { principal, requestId }, { workflowId, name, runId, sessionId })
    return { kind, sessionId }
  })
}

/** Records the audit event of a start by a person or the operator. */
export async function recordStarted(
  client: Queryable,
  by: AuditedBy,
  started: { workflowId: string; name: string; runId: string; sessionId: string },
): Promise<void> {
  await recordAuditEvent(client, {
    ...by,
    action: 'workflow.started',
    target: { kind: 'workflow', id: started.workflowId, name: started.name },
    changes: [
      { field: 'run_id', old: null, new: started.runId },
      { field: 'session_id', old: null, new: started.sessionId },
    ],
  })
}

/** Whether a workflow meets the rules of a start. */
export interface WorkflowReadiness {
  readonly description: string
  readonly isSuspended: boolean
  /** By rule, in the order in which a start checks them. */
  readonly violations: Readonly<Record<keyof typeof WORKFLOW_RULES, boolean>>
}

const READ_READINESS = `
  SELECT workflow.description, organization.is_suspended AS "isSuspended", json_build_object(
    ${Object.entries(WORKFLOW_RULES)
      .map(([code, isViolated]) => `'${code}', ${isViolated}`)
      .join(', ')}
  ) AS violations
  FROM workflows AS workflow
  JOIN organizations AS organization ON organization.id = workflow.organization_id
  ${JOIN_API_TRIGGER}
  WHERE workflow.organization_id = $1 AND workflow.id = $2 AND ${isVisible('workflow', '$3')}`

/** Reads the rules of a start for a workflow; undefined when the person cannot see it. */
export async function readReadiness(db: Db, { organizationId, memberId }: Viewer, workflowId: string) {
  return (await db.pool.query<WorkflowReadiness>(READ_READINESS, [organizationId, workflowId, memberId])).rows[0]
}
