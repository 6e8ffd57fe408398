import type { AutoRunFrequency } from '@workflow-service/contract'
import { column, type Db, newId, runStatement, statement } from '../connection/index.ts'
import { nextAutoRunAt } from '../workflows/index.ts'

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

const LIST_DUE = statement('runs/list-due-auto-runs', {
  workflowId: column.uuid,
  organizationId: column.uuid,
  frequency: column.text<AutoRunFrequency>(),
  anchorAt: column.timestamptz,
  dueAt: column.timestamptz,
  now: column.timestamptz,
})

const START_DUE = statement('runs/start-due-auto-run', { id: column.uuid })

/**
 * Starts every workflow whose schedule is due, each in a new session, and advances its schedule to the first future
 * time. Each due time is started once, by one of any number of runners. Several missed times are started once together.
 */
export async function startDueAutoRuns(db: Db, options: AutoRunOptions): Promise<readonly AutoRunStart[]> {
  const { now, limit, newRequestId } = options
  const { rows } = await runStatement(db, LIST_DUE, [now ?? null, limit])
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
