import type { AutoRunFrequency } from '@workflow-service/contract'
import { nextAutoRunAt } from './auto-run-schedule.ts'
import { type Database, type NamedStatement, runStatement } from './client.ts'
import { newId } from './ids.ts'

type Pooled = Pick<Database, 'pool'>

/** A scheduled run that was started. */
export interface AutoRunStart {
  readonly organizationId: string
  readonly workflowId: string
  readonly sessionId: string
  readonly startId: string
  readonly requestId: string
  /** The time that it was due; what was missed before it is not made up for. */
  readonly dueAt: Date
}

/** How to start what is due. */
export interface AutoRunOptions {
  /** Default: the database's clock, so that runners with different clocks agree. */
  readonly now?: Date
  /** Workflows at most. */
  readonly limit: number
  readonly newRequestId: () => string
}

interface ScheduledRow {
  id: string
  organization_id: string
  frequency: AutoRunFrequency
  anchor_at: Date
  next_at: Date
  now: Date
}

// Found by frequency, as the index is: each is one range of it.
const SCHEDULED_SQL = `
  SELECT id, organization_id, auto_run_frequency AS frequency, auto_run_anchor_at AS anchor_at,
    auto_run_next_at AS next_at, coalesce($1::timestamptz, clock_timestamp()) AS now
  FROM workflows`

const LIST_DUE: NamedStatement = {
  name: 'list-due-auto-runs',
  text: `${SCHEDULED_SQL}
    WHERE auto_run_frequency IN ('hourly', 'daily', 'weekly', 'monthly')
      AND auto_run_next_at <= coalesce($1::timestamptz, clock_timestamp())
    ORDER BY auto_run_next_at LIMIT $2`,
}

// Whoever moves the time on has the run: a comparison and a write in one statement, which also starts it. An inactive
// workflow's or a suspended organization's times pass by.
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
      JOIN organizations organization ON organization.id = due.organization_id
      WHERE due.is_active AND NOT organization.is_suspended
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
 * Starts every workflow whose schedule is due, each in a new session, and moves its schedule on to the first time that
 * lies ahead. However many runners do this, each due time is started once; times missed meanwhile are started once
 * together.
 */
export async function startDueAutoRuns(db: Pooled, options: AutoRunOptions): Promise<readonly AutoRunStart[]> {
  const { now, limit, newRequestId } = options
  const { rows } = await runStatement<ScheduledRow>(db, LIST_DUE, [now ?? null, limit])
  const started: AutoRunStart[] = []
  for (const row of rows) {
    const start: AutoRunStart = {
      organizationId: row.organization_id,
      workflowId: row.id,
      sessionId: newId(),
      startId: newId(),
      requestId: newRequestId(),
      dueAt: row.next_at,
    }
    const { rowCount } = await runStatement(db, START_DUE, [
      row.organization_id,
      row.id,
      row.next_at,
      nextAutoRunAt({ frequency: row.frequency, anchorAt: row.anchor_at }, row.now),
      start.sessionId,
      start.startId,
      scheduledContext(row),
      start.requestId,
    ])
    if (rowCount) started.push(start)
  }
  return started
}

/** The text of a scheduled start: for people and models to read, and lines that the builtin agent can fill fields from. */
function scheduledContext({ frequency, next_at }: ScheduledRow): string {
  return `Scheduled run\nfrequency: ${frequency}\nscheduled_for: ${next_at.toISOString()}`
}
