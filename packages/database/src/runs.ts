import type { JournalStep, NewJournalStep, StepKind } from '@workflow-service/contract'
import type { QueryResultRow } from 'pg'
import { type Database, type NamedStatement, runStatement } from './client.ts'
import type { Lease } from './sessions.ts'

type Pooled = Pick<Database, 'pool'>

/** How many times a run is taken up before it counts as failed (design 6.7). */
export const MAX_ATTEMPTS = 5

/** A run that its holder is to carry out now. */
export interface ClaimedRun {
  readonly id: string
  readonly organizationId: string
  readonly sessionId: string
  /** Its place in the session. */
  readonly number: number
  readonly workflow: { readonly id: string; readonly name: string; readonly description: string }
  readonly inputMessage: string
  readonly context: string
  readonly requestId: string
  /** How often it was taken up, this time included. */
  readonly attempts: number
  /** Nobody took it up before, so its journal is empty. */
  readonly isFirst: boolean
  /** How long it waited for that, by the database's clock; undefined where it was taken up before. */
  readonly waitedMs: number | undefined
}

/**
 * The end of a statement that claims runs: CTE `run`, with one row for each row of `source` (id, number) whose start is
 * to be seen. It becomes `running`, and its attempts count one more.
 *
 * Rows are found as arrays and by LATERAL with LIMIT 1, hence by index: of a join, Postgres may think that a scan of the
 * whole table is cheaper, above all before the first ANALYZE.
 */
export function claimRunSql(source: string): string {
  return `claimed AS (
    UPDATE starts SET status = 'running', attempts = attempts + 1, started_at = coalesce(started_at, now())
    WHERE id = ANY (ARRAY(
      SELECT start.id FROM ${source} CROSS JOIN LATERAL (
        SELECT id FROM starts WHERE session_id = ${source}.id AND number = ${source}.number LIMIT 1
      ) AS start
    ))
    RETURNING starts.*
  ),
  run AS (
    SELECT claimed.id AS run_id, claimed.organization_id, claimed.session_id, claimed.number, claimed.workflow_id,
      claimed.context, claimed.input_message, claimed.request_id, claimed.attempts,
      claimed.started_at = now() AS is_first,
      (extract(epoch FROM now() - claimed.created_at) * 1000)::float8 AS waited_ms, workflow.name AS workflow_name,
      workflow.description AS workflow_description
    FROM claimed CROSS JOIN LATERAL (
      SELECT name, description FROM workflows WHERE id = claimed.workflow_id LIMIT 1
    ) AS workflow
  )`
}

export interface ClaimedRunRow extends QueryResultRow {
  run_id: string | null
  organization_id: string
  session_id: string
  number: string
  workflow_id: string
  context: string
  input_message: string
  request_id: string
  attempts: number
  is_first: boolean
  waited_ms: number
  workflow_name: string
  workflow_description: string
}

/** The run of a row, or undefined where the row has none. */
export function toClaimedRun(row: ClaimedRunRow): ClaimedRun | undefined {
  if (row.run_id === null) return undefined
  return {
    id: row.run_id,
    organizationId: row.organization_id,
    sessionId: row.session_id,
    number: Number(row.number),
    workflow: { id: row.workflow_id, name: row.workflow_name, description: row.workflow_description },
    inputMessage: row.input_message,
    context: row.context,
    requestId: row.request_id,
    attempts: row.attempts,
    isFirst: row.is_first,
    waitedMs: row.is_first ? Math.max(0, row.waited_ms) : undefined,
  }
}

const CLAIM_NEXT_RUN: NamedStatement = {
  name: 'claim-next-run',
  text: `
    WITH held AS MATERIALIZED (
      SELECT id, last_finished_number + 1 AS number, last_finished_number < last_start_number AS has_work FROM sessions
      WHERE id = $2 AND lease_epoch = $3 AND lease_owner = $1
      FOR NO KEY UPDATE
    ),
    next AS (SELECT id, number FROM held WHERE has_work),
    ${claimRunSql('next')}
    SELECT held.number AS held_number, held.has_work, run.* FROM held LEFT JOIN run ON run.session_id = held.id`,
}

const SKIP_DELETED_START: NamedStatement = {
  name: 'skip-deleted-start',
  text: `
    UPDATE sessions SET last_finished_number = $4,
      waiting_since = CASE WHEN last_start_number > $4 THEN now() END
    WHERE id = $2 AND lease_epoch = $3 AND lease_owner = $1 AND last_finished_number = $4 - 1
      AND NOT EXISTS (SELECT FROM starts WHERE session_id = $2 AND number = $4)`,
}

/** What a holder is to do next. */
export type NextRun =
  | { readonly kind: 'run'; readonly run: ClaimedRun }
  /** The lease is the caller's, and the session has no work. */
  | { readonly kind: 'idle' }
  | { readonly kind: 'lease_lost' }

/** Takes up the session's next start in number order. A start that was deleted with its workflow is passed over. */
export async function claimNextRun(db: Pooled, owner: string, lease: Lease): Promise<NextRun> {
  const values = [owner, lease.sessionId, lease.epoch]
  for (;;) {
    const { rows } = await runStatement<ClaimedRunRow & { held_number: string; has_work: boolean }>(
      db,
      CLAIM_NEXT_RUN,
      values,
    )
    const [row] = rows
    if (!row) return { kind: 'lease_lost' }
    if (!row.has_work) return { kind: 'idle' }
    const run = toClaimedRun(row)
    if (run) return { kind: 'run', run }
    await runStatement(db, SKIP_DELETED_START, [...values, row.held_number])
  }
}

/** Steps to add to the journal of a run, from `position` on. */
export interface StepsToAppend {
  readonly lease: Lease
  readonly runId: string
  readonly position: number
  readonly steps: readonly NewJournalStep[]
}

const APPEND_STEPS: NamedStatement = {
  name: 'append-steps',
  text: `
    WITH step AS MATERIALIZED (
      SELECT * FROM unnest((SELECT $2::uuid[]), $3::bigint[], $4::uuid[], $5::integer[], $6::text[], $7::text[])
        AS step (session_id, epoch, run_id, position, kind, data)
    ),
    held AS MATERIALIZED (
      SELECT id, lease_epoch FROM sessions
      WHERE id = ANY ((SELECT $2::uuid[])::uuid[]) AND lease_owner = $1
      ORDER BY id FOR NO KEY UPDATE
    ),
    added AS (
      INSERT INTO run_steps (run_id, position, kind, data, epoch)
      SELECT step.run_id, step.position, step.kind, step.data::json, step.epoch
      FROM step JOIN held ON held.id = step.session_id AND held.lease_epoch = step.epoch
      ON CONFLICT (run_id, position) DO NOTHING
    )
    SELECT id, lease_epoch FROM held`,
}

/**
 * Writes steps of any number of runs in one statement, each fenced: the session's row is locked, so that a new holder
 * reads either none of them or all. Resolves with whether each lease was still the caller's, and its steps are written.
 * Repeating it after an answer that was lost does no harm.
 */
export async function appendSteps(
  db: Pooled,
  owner: string,
  appends: readonly StepsToAppend[],
): Promise<readonly boolean[]> {
  const rows = appends.flatMap(({ lease, runId, position, steps }) =>
    steps.map((step, index) => ({ lease, runId, position: position + index, step })),
  )
  const { rows: held } = await runStatement<{ id: string; lease_epoch: string }>(db, APPEND_STEPS, [
    owner,
    rows.map(({ lease }) => lease.sessionId),
    rows.map(({ lease }) => lease.epoch),
    rows.map(({ runId }) => runId),
    rows.map(({ position }) => position),
    rows.map(({ step }) => step.kind),
    rows.map(({ step }) => JSON.stringify(step.data)),
  ])
  const epochs = new Map(held.map((row) => [row.id, Number(row.lease_epoch)]))
  return appends.map(({ lease }) => epochs.get(lease.sessionId) === lease.epoch)
}

const READ_STEPS: NamedStatement = {
  name: 'read-steps',
  text: 'SELECT run_id, position, kind, data, created_at FROM run_steps WHERE run_id = ANY ($1::uuid[]) ORDER BY run_id, position',
}

/** The journal of a run, in order. */
export async function readSteps(db: Pooled, runId: string): Promise<readonly JournalStep[]> {
  return (await readStepsOf(db, [runId])).get(runId) ?? []
}

async function readStepsOf(db: Pooled, runIds: readonly string[]): Promise<ReadonlyMap<string, JournalStep[]>> {
  const { rows } = await runStatement<StepRow>(db, READ_STEPS, [runIds])
  const steps = new Map<string, JournalStep[]>()
  for (const row of rows) {
    const step = { kind: row.kind, data: row.data, position: row.position, createdAt: row.created_at } as JournalStep
    const journal = steps.get(row.run_id)
    if (journal) journal.push(step)
    else steps.set(row.run_id, [step])
  }
  return steps
}

interface StepRow extends QueryResultRow {
  run_id: string
  position: number
  kind: StepKind
  data: unknown
  created_at: Date
}

/** How a run ended. */
export interface FinishedRun {
  readonly lease: Lease
  readonly number: number
  readonly status: 'succeeded' | 'failed'
  /** Why it failed; null when it succeeded. */
  readonly error: string | null
  /** Whether the session's next start is to be taken up under the same lease; else the session is let go. */
  readonly goesOn: boolean
}

/** What came of finishing a run. */
export type FinishOutcome =
  | { readonly kind: 'finished'; readonly next: ClaimedRun | undefined; readonly isReleased: boolean }
  /** Nothing was written. */
  | { readonly kind: 'lease_lost' }

// The counter that says whether there is more is read from the row that is locked, in the statement that lets go: a start
// that was recorded before is run, one that comes after finds the session free. `moved` follows `finished`, and `claimed`
// follows `moved`, so that no two runs of the session are `running` at any moment, as the unique index wants.
const FINISH_RUNS: NamedStatement = {
  name: 'finish-runs',
  text: `
    WITH locked AS MATERIALIZED (
      SELECT id, lease_epoch, last_finished_number + 1 AS number FROM sessions
      WHERE id = ANY ((SELECT $2::uuid[])::uuid[]) AND lease_owner = $1
      ORDER BY id FOR NO KEY UPDATE
    ),
    held AS MATERIALIZED (
      SELECT ended.*, start.id AS run_id FROM locked
      JOIN unnest((SELECT $2::uuid[]), $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::boolean[])
        AS ended (session_id, epoch, number, status, error, goes_on)
        ON ended.session_id = locked.id AND ended.epoch = locked.lease_epoch AND ended.number = locked.number
      CROSS JOIN LATERAL (
        SELECT id FROM starts WHERE session_id = locked.id AND number = locked.number LIMIT 1
      ) AS start
    ),
    finished AS (
      UPDATE starts SET status = held.status, error = held.error, finished_at = now(),
        attempts = least(attempts, ${MAX_ATTEMPTS})
      FROM held WHERE starts.id = held.run_id AND starts.id = ANY (ARRAY(SELECT run_id FROM held))
      RETURNING starts.session_id
    ),
    moved AS (
      UPDATE sessions session SET
        last_finished_number = held.number,
        waiting_since = CASE WHEN session.last_start_number > held.number THEN now() END,
        lease_owner = CASE WHEN session.last_start_number > held.number AND held.goes_on THEN lease_owner END,
        lease_until = CASE WHEN session.last_start_number > held.number AND held.goes_on THEN lease_until END
      FROM held JOIN finished ON finished.session_id = held.session_id
      WHERE session.id = held.session_id AND session.id = ANY ((SELECT $2::uuid[])::uuid[])
      RETURNING session.id, held.number + 1 AS number, session.lease_owner IS NULL AS is_released
    ),
    next AS (SELECT id, number FROM moved WHERE NOT is_released),
    ${claimRunSql('next')}
    SELECT moved.id AS moved_id, moved.is_released, run.* FROM moved LEFT JOIN run ON run.session_id = moved.id`,
}

/**
 * Ends runs of any number of sessions in one statement, each fenced, and takes up each session's next start or, when
 * there is none, lets the session go.
 */
export async function finishRuns(
  db: Pooled,
  owner: string,
  runs: readonly FinishedRun[],
): Promise<readonly FinishOutcome[]> {
  const { rows } = await runStatement<ClaimedRunRow & { moved_id: string; is_released: boolean }>(db, FINISH_RUNS, [
    owner,
    runs.map(({ lease }) => lease.sessionId),
    runs.map(({ lease }) => lease.epoch),
    runs.map(({ number }) => number),
    runs.map(({ status }) => status),
    runs.map(({ error }) => error),
    runs.map(({ goesOn }) => goesOn),
  ])
  const moved = new Map(rows.map((row) => [row.moved_id, row]))
  return runs.map(({ lease }): FinishOutcome => {
    const row = moved.get(lease.sessionId)
    return row ? { kind: 'finished', next: toClaimedRun(row), isReleased: row.is_released } : { kind: 'lease_lost' }
  })
}

const COUNT_ATTEMPT: NamedStatement = {
  name: 'count-attempt',
  text: `
    WITH held AS MATERIALIZED (
      SELECT id, last_finished_number + 1 AS number FROM sessions
      WHERE id = $2 AND lease_epoch = $3 AND lease_owner = $1
      FOR NO KEY UPDATE
    )
    UPDATE starts SET attempts = attempts + 1 FROM held
    WHERE starts.session_id = held.id AND starts.number = held.number AND starts.status = 'running'
    RETURNING starts.attempts`,
}

/** Counts one more attempt at the run under way, and resolves with how many it were; undefined when the lease is lost. */
export async function countAttempt(db: Pooled, owner: string, lease: Lease): Promise<number | undefined> {
  const values = [owner, lease.sessionId, lease.epoch]
  const { rows } = await runStatement<{ attempts: number }>(db, COUNT_ATTEMPT, values)
  return rows[0]?.attempts
}

// ---------------------------------------------------------------------------------------------- the session's history

/** An earlier run of a session. */
export interface EarlierRun {
  readonly runId: string
  readonly workflowName: string
  readonly inputMessage: string
  readonly context: string
  readonly status: 'succeeded' | 'failed'
  readonly error: string | null
  readonly steps: readonly JournalStep[]
}

const LIST_EARLIER_RUNS: NamedStatement = {
  name: 'list-earlier-runs',
  text: `
    SELECT starts.id, workflow.name AS workflow_name, starts.input_message, starts.context, starts.status, starts.error
    FROM starts JOIN workflows workflow ON workflow.id = starts.workflow_id
    WHERE starts.organization_id = $1 AND starts.session_id = $2 AND starts.number < $3
      AND starts.status IN ('succeeded', 'failed')
    ORDER BY starts.number DESC LIMIT $4`,
}

/** The newest `limit` runs of the session before the one of this number, oldest first, with their journals. */
export async function listEarlierRuns(
  db: Pooled,
  organizationId: string,
  session: { readonly sessionId: string; readonly number: number; readonly limit: number },
): Promise<readonly EarlierRun[]> {
  const { rows } = await runStatement<EarlierRunRow>(db, LIST_EARLIER_RUNS, [
    organizationId,
    session.sessionId,
    session.number,
    session.limit,
  ])
  rows.reverse()
  const steps = await readStepsOf(
    db,
    rows.map((row) => row.id),
  )
  return rows.map((row) => ({
    runId: row.id,
    workflowName: row.workflow_name,
    inputMessage: row.input_message,
    context: row.context,
    status: row.status,
    error: row.error,
    steps: steps.get(row.id) ?? [],
  }))
}

interface EarlierRunRow extends QueryResultRow {
  id: string
  workflow_name: string
  input_message: string
  context: string
  status: 'succeeded' | 'failed'
  error: string | null
}

// ------------------------------------------------------------------------------------------------ for people (`wf`)

export type RunStatus = 'queued' | 'running' | 'succeeded' | 'failed'

/** A run as `wf runs list` shows it; `id` is the start's id. */
export interface RunRow {
  readonly id: string
  readonly workflow_id: string
  readonly session_id: string
  readonly status: RunStatus
  readonly attempts: number
  readonly error: string | null
  readonly created_at: Date
  readonly started_at: Date | null
  readonly finished_at: Date | null
}

/** Which runs to list: those that match all that is given. `since` counts, `until` does not. */
export interface RunFilter {
  readonly status?: RunStatus
  readonly workflowId?: string
  readonly sessionId?: string
  readonly since?: Date
  readonly until?: Date
  readonly limit: number
}

const RUN_COLUMNS = `starts.id, starts.workflow_id, starts.session_id, starts.status, starts.attempts, starts.error,
  starts.created_at, starts.started_at, starts.finished_at`

/** Runs of the organization, newest first. */
export async function listRuns(db: Pooled, organizationId: string, filter: RunFilter): Promise<RunRow[]> {
  const { text, values } = runQuerySql(organizationId, filter)
  return (await db.pool.query<RunRow>(text, values)).rows
}

/** The query of `listRuns`, to see it explained. */
export function runQuerySql(organizationId: string, filter: RunFilter): { text: string; values: unknown[] } {
  const values: unknown[] = []
  const put = (value: unknown): string => `$${values.push(value)}`
  const conditions = [`starts.organization_id = ${put(organizationId)}`]
  if (filter.status) conditions.push(`starts.status = ${put(filter.status)}`)
  if (filter.workflowId) conditions.push(`starts.workflow_id = ${put(filter.workflowId)}`)
  if (filter.sessionId) conditions.push(`starts.session_id = ${put(filter.sessionId)}`)
  if (filter.since) conditions.push(`starts.created_at >= ${put(filter.since)}`)
  if (filter.until) conditions.push(`starts.created_at < ${put(filter.until)}`)
  const text = `SELECT ${RUN_COLUMNS} FROM starts WHERE ${conditions.join(' AND ')}
    ORDER BY starts.created_at DESC, starts.id DESC LIMIT ${put(filter.limit)}`
  return { text, values }
}

/** All that is known of a run: its start, its journal and what it sent. */
export interface RunDetails extends RunRow {
  readonly organization_id: string
  readonly workflow_name: string
  /** Its place in the session. */
  readonly number: number
  readonly origin: 'api' | 'auto_run'
  readonly context: string
  readonly input_message: string
  readonly request_id: string
  readonly steps: readonly JournalStep[]
  readonly deliveries: readonly RunDelivery[]
}

/** A delivery as `wf runs show` tells it. */
export interface RunDelivery {
  readonly id: string
  readonly source_id: string
  /** Null when the source was never saved. */
  readonly source_name: string | null
  readonly outcome: string
  readonly status: number | null
  readonly reason: string | null
  readonly duration_ms: number | null
  readonly answer: string | null
  readonly created_at: Date
  readonly finished_at: Date | null
}

/** The story of any run, for the operator; null when there is no such run. */
export async function showRun(db: Pooled, runId: string): Promise<RunDetails | null> {
  const found = await db.pool.query<Omit<RunDetails, 'number' | 'steps' | 'deliveries'> & { number: string }>(
    `SELECT ${RUN_COLUMNS}, starts.organization_id, workflow.name AS workflow_name, starts.number, starts.origin,
       starts.context, starts.input_message, starts.request_id
     FROM starts JOIN workflows workflow ON workflow.id = starts.workflow_id WHERE starts.id = $1`,
    [runId],
  )
  const [row] = found.rows
  if (!row) return null
  const [steps, deliveries] = await Promise.all([
    readSteps(db, runId),
    db.pool.query<RunDelivery>(
      `SELECT delivery.id, delivery.source_id, source.name AS source_name, delivery.outcome, delivery.status,
         delivery.reason, delivery.duration_ms, delivery.answer, delivery.created_at, delivery.finished_at
       FROM deliveries delivery LEFT JOIN webhook_sources source
         ON source.organization_id = delivery.organization_id AND source.id = delivery.source_id
       WHERE delivery.run_id = $1 ORDER BY delivery.created_at, delivery.id`,
      [runId],
    ),
  ])
  return { ...row, number: Number(row.number), steps, deliveries: deliveries.rows }
}
