/**
 * What only `wf` reads. Rows are named like the columns, because `wf --json` prints them. `showRun`, `showSession` and
 * `findIdsByPrefix` are unscoped: an operator knows the id, not the organization.
 */
import type { ApprovalOut, DeliveryDetailOut, JournalStep, RunOut } from '@workflow-service/contract'
import { escapeLiteral } from 'pg'
import { type Db, isoTime } from '../connection/index.ts'
import { hasStatus, startsOfStatus } from '../organizations/index.ts'
import { listApprovalsOfRun } from './approvals.ts'
import { readSteps } from './journal.ts'
import { type RunQuery, waitsForSource } from './run-lists.ts'

/** A run as `wf runs list` prints it. `id` is the id of the start. */
export interface RunRow extends Pick<RunOut, 'id' | 'session_id' | 'status' | 'attempts' | 'error'> {
  readonly workflow_id: string
  readonly created_at: Date
  readonly started_at: Date | null
  readonly finished_at: Date | null
}

/** Which runs to list: those that match every given filter. */
export interface RunFilter extends Omit<RunQuery, 'search' | 'after'> {
  readonly sessionId?: string
  readonly ids?: readonly string[]
}

/** Runs of the organization, newest first. */
export async function listRuns(db: Db, organizationId: string, filter: RunFilter): Promise<RunRow[]> {
  const { status, workflowId, sessionId, ids, since, until, limit } = filter
  // Optional filters are part of the text, so that PostgreSQL plans each combination with the index that serves it.
  const { rows } = await db.pool.query<RunRow>(
    `SELECT id, workflow_id, session_id, status, attempts, error, created_at, started_at, finished_at
     FROM ${startsOfStatus(status, sessionId && `sessions.id = ${escapeLiteral(sessionId)}`)}
     WHERE organization_id = $1 AND created_at >= $2 AND created_at < $3
       ${status ? `AND ${hasStatus(status)}` : ''}
       ${workflowId ? `AND workflow_id = ${escapeLiteral(workflowId)}` : ''}
       ${sessionId ? `AND session_id = ${escapeLiteral(sessionId)}` : ''}
       ${ids ? `AND id = ANY (${escapeLiteral(`{${ids.join()}}`)}::uuid[])` : ''}
     ORDER BY created_at DESC, id DESC LIMIT $4`,
    [organizationId, since ?? '-infinity', until ?? 'infinity', limit],
  )
  return rows
}

/** All that is known of a run: its start, its journal and its deliveries. */
export interface RunDetails extends RunRow {
  readonly organization_id: string
  readonly workflow_name: string
  /** Its position in the session, from 1. */
  readonly number: number
  readonly origin: 'api' | 'auto_run' | 'app'
  readonly context: string
  readonly input_message: string
  readonly request_id: string
  readonly waits_for_source: boolean
  readonly steps: readonly JournalStep[]
  readonly deliveries: readonly RunDelivery[]
  readonly approvals: readonly ApprovalOut[]
}

/** A delivery as `wf runs show` prints it. */
export interface RunDelivery extends Pick<
  DeliveryDetailOut,
  'id' | 'source_id' | 'source_name' | 'outcome' | 'status' | 'reason' | 'duration_ms' | 'answer' | 'answer_headers'
> {
  readonly created_at: Date
  readonly finished_at: Date | null
}

/** Any run with its journal and its deliveries; null when there is none with this id. */
export async function showRun(db: Db, runId: string): Promise<RunDetails | null> {
  const found = await db.pool.query<Omit<RunDetails, 'steps' | 'deliveries' | 'approvals'>>(
    `SELECT starts.id, starts.workflow_id, starts.session_id, starts.status, starts.attempts, starts.error,
       starts.created_at, starts.started_at, starts.finished_at, starts.organization_id,
       workflows.name AS workflow_name, starts.number::float8 AS number, starts.origin, starts.context,
       starts.input_message, starts.request_id, ${waitsForSource('starts')} AS waits_for_source
     FROM starts JOIN workflows ON workflows.id = starts.workflow_id
     WHERE starts.id = $1`,
    [runId],
  )
  const [run] = found.rows
  if (!run) return null
  const steps = await readSteps(db, runId)
  const deliveries = await db.pool.query<RunDelivery>(
    `SELECT deliveries.id, deliveries.source_id, webhook_sources.name AS source_name, deliveries.outcome,
       deliveries.status, deliveries.reason, deliveries.duration_ms, deliveries.answer, deliveries.created_at,
       deliveries.finished_at, deliveries.answer_headers
     FROM deliveries
     LEFT JOIN webhook_sources ON webhook_sources.organization_id = deliveries.organization_id
       AND webhook_sources.id = deliveries.source_id
     WHERE deliveries.run_id = $1 ORDER BY deliveries.created_at, deliveries.id`,
    [runId],
  )
  const approvals = await listApprovalsOfRun(db, run.organization_id, runId)
  return { ...run, steps, deliveries: deliveries.rows, approvals }
}

/** A session as `wf sessions --json` prints it, with the names of the columns. */
export interface SessionRow {
  readonly id: string
  readonly organization_id: string
  readonly is_open: boolean
  readonly created_at: Date
  readonly closed_at: Date | null
  /** Starts accepted. */
  readonly starts: number
  /** Runs finished. */
  readonly finished: number
  readonly lease: { readonly owner: string; readonly epoch: number; readonly until: string } | null
}

const SESSION_COLUMNS = `id, organization_id, is_open, created_at, closed_at,
  last_start_number::float8 AS starts, last_finished_number::float8 AS finished,
  CASE WHEN lease_owner IS NOT NULL
    THEN json_build_object('owner', lease_owner, 'epoch', lease_epoch,
      'until', ${isoTime('lease_until')}) END AS lease`

/** Any session; null when there is none with this id. */
export async function showSession(db: Db, sessionId: string): Promise<SessionRow | null> {
  const { rows } = await db.pool.query<SessionRow>(`SELECT ${SESSION_COLUMNS} FROM sessions WHERE id = $1`, [sessionId])
  return rows[0] ?? null
}

/** Sessions of the organization, newest first. */
export async function listSessionRows(db: Db, organizationId: string, limit: number): Promise<SessionRow[]> {
  const { rows } = await db.pool.query<SessionRow>(
    `SELECT ${SESSION_COLUMNS} FROM sessions
     WHERE organization_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2`,
    [organizationId, limit],
  )
  return rows
}

/** The ids of runs, or of sessions, that begin with these digits, at most `limit`. Hyphens are optional. */
export async function findIdsByPrefix(
  db: Db,
  table: 'starts' | 'sessions',
  { prefix, organizationId }: { readonly prefix: string; readonly organizationId: string | null },
  limit: number,
): Promise<string[]> {
  const digits = prefix.replaceAll('-', '')
  const { rows } = await db.pool.query<{ id: string }>(
    `SELECT id FROM ${table} WHERE id BETWEEN $1 AND $2 AND ($3::uuid IS NULL OR organization_id = $3)
     ORDER BY id LIMIT $4`,
    [digits.padEnd(32, '0'), digits.padEnd(32, 'f'), organizationId, limit],
  )
  return rows.map(({ id }) => id)
}
