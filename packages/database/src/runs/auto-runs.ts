import type { AutoRunFrequency, ScheduleTiming } from '@workflow-service/contract'
import {
  column,
  type Db,
  insertMissing,
  inTransaction,
  isDatabaseUnavailable,
  newId,
  NIL_UUID,
  runStatement,
  statement,
} from '../connection/index.ts'
import { isVisible, viewerOf } from '../organizations/index.ts'
import { nextAutoRunAt, type WorkflowEdit } from '../workflows/index.ts'
import { recordStarted } from './app-starts.ts'

export interface AutoRunStart {
  readonly organizationId: string
  readonly workflowId: string
  readonly sessionId: string
  readonly startId: string
  readonly requestId: string
  /** The time that it was due. */
  readonly dueAt: Date
}

const LIST_DUE = statement('runs/list-due-auto-runs', {
  workflowId: column.uuid,
  organizationId: column.uuid,
  frequency: column.text<AutoRunFrequency>(),
  timing: column.json<ScheduleTiming>().orNull,
  anchorAt: column.timestamptz,
  dueAt: column.timestamptz,
  now: column.timestamptz,
})

/** A workflow that is due: the next ones are due later, or have a greater id. */
export type DuePosition = Pick<AutoRunStart, 'dueAt' | 'workflowId'>

interface DueOptions {
  readonly now?: Date
  readonly limit: number
  /** Continues after this workflow. */
  readonly after?: DuePosition | undefined
  readonly newRequestId: () => string
  /** Called for each workflow that could not be started, and stays due. Default: throws the error. */
  readonly onFailed?: (
    due: Pick<AutoRunStart, 'organizationId' | 'workflowId' | 'dueAt' | 'requestId'>,
    error: unknown,
  ) => void
}

const START_DUE = statement('runs/start-due-auto-run', { id: column.uuid })

/**
 * Starts every workflow whose schedule is due, each in a new session, and advances its schedule to the first future
 * time. Each due time is started once, by one of any number of runners. Several missed times are started once together.
 * `now` is the database's clock by default, so that runners with different clocks agree. `next`: there may be others
 * after it, also if none was started, because the workflows were inactive. A workflow that cannot be started, or whose
 * row is locked, does not hold up the others.
 */
export async function startDueAutoRuns(
  db: Db,
  { now, limit, after, newRequestId, onFailed = rethrow }: DueOptions,
): Promise<{ readonly started: readonly AutoRunStart[]; readonly next: DuePosition | undefined }> {
  const { rows } = await runStatement(db, LIST_DUE, [
    now ?? null,
    limit,
    after?.dueAt ?? '-infinity',
    after?.workflowId ?? NIL_UUID,
  ])
  const started: AutoRunStart[] = []
  for (const due of rows) {
    const { organizationId, workflowId, dueAt } = due
    const start = { organizationId, workflowId, dueAt, sessionId: newId(), startId: newId(), requestId: newRequestId() }
    try {
      const { rowCount } = await runStatement(db, START_DUE, [
        organizationId,
        workflowId,
        dueAt,
        nextAutoRunAt(due, due.now),
        start.sessionId,
        start.startId,
        toContext(due),
        start.requestId,
      ])
      if (rowCount) started.push(start)
    } catch (error) {
      if (isDatabaseUnavailable(error)) throw error
      onFailed(start, error)
    }
  }
  return { started, next: rows.length === limit ? rows.at(-1) : undefined }
}

function rethrow(_due: unknown, error: unknown): never {
  throw error
}

/** The context of a scheduled start: JSON, of which the built-in agent takes what the example has. */
function toContext({ frequency, dueAt }: { frequency: AutoRunFrequency | null; dueAt: Date }): string {
  return JSON.stringify({ frequency: frequency ?? 'once', scheduled_for: dueAt })
}

/** The result of a scheduled start by a person. `replayed`: the run was started before. */
export type ScheduledStartOutcome =
  | { readonly kind: 'accepted' | 'replayed'; readonly sessionId: string }
  | { readonly kind: 'workflow_not_found' | 'workflow_inactive' | 'organization_suspended' | 'id_taken' }

/** Starts a workflow as its schedule does, now and by a person. The schedule stays as it is. */
export async function startScheduledNow(db: Db, edit: WorkflowEdit, runId: string): Promise<ScheduledStartOutcome> {
  return await insertMissing(() => startNow(db, edit, runId))
}

async function startNow(db: Db, edit: WorkflowEdit, runId: string): Promise<ScheduledStartOutcome> {
  const { workflowId, principal, requestId } = edit
  const { organizationId } = principal
  return await inTransaction(db, async (client): Promise<ScheduledStartOutcome> => {
    const find = `
      SELECT workflow.name, workflow.auto_run_frequency AS frequency, workflow.is_active AS "isActive",
        organization.is_suspended AS "isSuspended", now() AS now
      FROM workflows AS workflow JOIN organizations AS organization ON organization.id = workflow.organization_id
      WHERE workflow.organization_id = $1 AND workflow.id = $2 AND ${isVisible('workflow', '$3')}`
    const values = [organizationId, workflowId, viewerOf(principal).memberId]
    await client.query(`${find} FOR NO KEY UPDATE OF workflow`, values)
    // Again: a statement that has waited for the lock sees the people who had access before.
    const { rows } = await client.query<{
      name: string
      frequency: AutoRunFrequency | null
      isActive: boolean
      isSuspended: boolean
      now: Date
    }>(find, values)
    const [workflow] = rows
    if (!workflow) return { kind: 'workflow_not_found' }
    const known = await client.query<{ sessionId: string; isSame: boolean }>(
      `SELECT session_id AS "sessionId", workflow_id = $2 AND origin = 'auto_run' AS "isSame" FROM starts WHERE id = $1`,
      [runId, workflowId],
    )
    const [earlier] = known.rows
    if (earlier) return earlier.isSame ? { kind: 'replayed', sessionId: earlier.sessionId } : { kind: 'id_taken' }
    if (workflow.isSuspended) return { kind: 'organization_suspended' }
    if (!workflow.isActive) return { kind: 'workflow_inactive' }
    const sessionId = newId()
    const context = toContext({ frequency: workflow.frequency, dueAt: workflow.now })
    await client.query(
      'INSERT INTO sessions (id, organization_id, last_start_number, waiting_since) VALUES ($1, $2, 1, now())',
      [sessionId, organizationId],
    )
    await client.query(
      `INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id)
       VALUES ($1, $2, $3, $4, 1, 'auto_run', $5, $6)`,
      [runId, organizationId, workflowId, sessionId, context, requestId],
    )
    await recordStarted(client, { principal, requestId }, { workflowId, name: workflow.name, runId, sessionId })
    return { kind: 'accepted', sessionId }
  })
}
