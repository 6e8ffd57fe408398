import type { AutoRunFrequency } from '@workflow-service/contract'
import { nextAutoRunAt } from '../workflows/index.ts'
import { type Db, type NamedStatement, newId, runStatement } from '../connection/index.ts'

/** A scheduled run that was started. */
export interface AutoRunStart {
  readonly organizationId: string
  readonly workflowId: string
  readonly sessionId: string
  readonly startId: string
  readonly requestId: string
  /** The time that it was due. */
  readonly dueAt: Date
}

/** Options of `startDueAutoRuns`. */
export interface AutoRunOptions {
  /** Default: the database's clock, so that runners with different clocks agree. */
  readonly now?: Date
  /** Maximum workflows to start. */
  readonly limit: number
  readonly newRequestId: () => string
}

interface DueWorkflow {
  readonly workflowId: string
  readonly organizationId: string
  readonly frequency: AutoRunFrequency
  readonly anchorAt: Date
  readonly dueAt: Date
  readonly now: Date
}

// The list of all frequencies makes the index workflows_auto_run usable, which begins with the frequency.
const LIST_DUE: NamedStatement = {
  name: 'list-due-auto-runs',
  text: `
    SELECT id AS "workflowId", organization_id AS "organizationId", auto_run_frequency AS frequency,
      auto_run_anchor_at AS "anchorAt", auto_run_next_at AS "dueAt", coalesce($1::timestamptz, clock_timestamp()) AS now
    FROM workflows
    WHERE auto_run_frequency IN ('hourly', 'daily', 'weekly', 'monthly')
      AND auto_run_next_at <= coalesce($1::timestamptz, clock_timestamp())
    ORDER BY auto_run_next_at LIMIT $2`,
}

// Of several runners, the one whose UPDATE still finds the due time starts the run. The schedule of an inactive workflow or
// a suspended organization advances without a run.
const START_DUE: NamedStatement = {
  name: 'start-due-auto-run',
  text: `
    WITH due AS (
      UPDATE workflows SET auto_run_next_at = $4
      WHERE organization_id = $1 AND id = $2 AND auto_run_next_at = $3
      RETURNING organization_id, id, is_active
    ),
    allowed AS (
      SELECT due.organization_id, due.id FROM due
      JOIN organizations ON organizations.id = due.organization_id
      WHERE due.is_active AND NOT organizations.is_suspended
    ),
    opened AS (
      INSERT INTO sessions (id, organization_id, last_start_number, waiting_since)
      SELECT $5, organization_id, 1, now() FROM allowed
    )
    INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id)
    SELECT $6, organization_id, id, $5, 1, 'auto_run', $7, $8 FROM allowed
    RETURNING id`,
}

/**
 * Starts every workflow whose schedule is due, each in a new session, and advances its schedule to the first future time.
 * Each due time is started once, by one of any number of runners. Several missed times are started once together.
 */
export async function startDueAutoRuns(db: Db, options: AutoRunOptions): Promise<readonly AutoRunStart[]> {
  const { now, limit, newRequestId } = options
  const { rows } = await runStatement<DueWorkflow>(db, LIST_DUE, [now ?? null, limit])
  const started: AutoRunStart[] = []
  for (const due of rows) {
    const { organizationId, workflowId, dueAt } = due
    const start = { organizationId, workflowId, dueAt, sessionId: newId(), startId: newId(), requestId: newRequestId() }
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
  }
  return started
}

/** The context of a scheduled start: lines of `name: value`, from which the built-in agent can fill fields. */
function toContext({ frequency, dueAt }: DueWorkflow): string {
  return `Scheduled run\nfrequency: ${frequency}\nscheduled_for: ${dueAt.toISOString()}`
}
