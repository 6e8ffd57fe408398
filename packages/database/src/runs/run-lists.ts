import type { NewJournalStep, RunDetailOut, RunOut } from '@workflow-service/contract'
import { escapeLiteral } from 'pg'
import { addWords, type Db, matches, paging, parseSearch, queryRows } from '../connection/index.ts'
import { listDeliveriesOfRun, stepsOfRow } from '../deliveries/index.ts'
import {
  type Candidates,
  type Compared,
  ERROR_CODE,
  FAILED_RECENTLY,
  hasQueueOf,
  LONG_QUEUE,
  hasStatus,
  isVisible,
  NEEDS_ATTENTION,
  readFound,
  rowsWithIds,
  startsOfStatus,
  USER_NAME,
  type Viewer,
} from '../organizations/index.ts'
import { listApprovalsOfRun } from './approvals.ts'

/** Which runs to list: those that match every given filter. */
export interface RunQuery {
  readonly status?: RunOut['status'] | undefined
  readonly workflowId?: string | undefined
  /** Accepted at this time or later. */
  readonly since?: Date | undefined
  /** Accepted before this time. */
  readonly until?: Date | undefined
  readonly limit: number
  /** Words of its text, ignoring case, or the last 8 characters of its id. */
  readonly search?: string | undefined
  /** Failed with an error of this code, and needs attention: those that the overview counts. */
  readonly needsAttention?: string | undefined
  /** Continues after this run. */
  readonly after?: paging.TimePosition | undefined
}

/** The position of a run in its session. */
export interface RunNumber {
  readonly number: number
}

/** The runs that one statement reads for a page; a member may not see all of them. */
const NEAR_ROWS = 500

export const FIRST_LINE = `left(split_part(ltrim(start.context, E' \\r\\n\\t'), E'\\n', 1), 200)`

const RUN_COLUMNS = `start.id, json_build_object('id', workflow.id, 'name', workflow.name) AS workflow,
  ${FIRST_LINE} AS first_line, start.session_id,
  start.number::float8 AS number, start.status, start.error, start.attempts, start.origin, start.cancelled_by_name AS cancelled_by,
  CASE
    WHEN start.user_id IS NOT NULL THEN (
      SELECT json_build_object('kind', 'person', 'id', users.id, 'name', ${USER_NAME})
      FROM users WHERE users.organization_id = start.organization_id AND users.id = start.user_id
    )
    WHEN start.api_key_id IS NOT NULL THEN (
      SELECT json_build_object('kind', 'api_key', 'id', id, 'name', name) FROM api_keys WHERE id = start.api_key_id
    )
  END AS started_by,
  start.created_at, start.started_at, start.finished_at`

/** SQL: whether a row of `starts` is parked for a source that is not resumed. */
export const waitsForSource = (start: string): string => `EXISTS (
  SELECT FROM sessions WHERE sessions.id = ${start}.session_id AND paused_source_id IS NOT NULL
    AND last_finished_number + 1 = ${start}.number
)`

/**
 * Runs that the viewer sees, newest first. Reads a bounded number of rows by an index for
 * each filter. Of a member whose workflows ran rarely, it reads the newest runs of each of them.
 */
export async function listVisibleRuns(db: Db, viewer: Viewer, query: RunQuery): Promise<readonly RunOut[]> {
  const { organizationId, memberId } = viewer
  const { status, workflowId, since, until, limit, after } = query
  const values = [organizationId, memberId, since ?? '-infinity', ...paging.positionParams(after, until), limit]
  // Optional filters are part of the text, so that PostgreSQL plans each combination with the index that serves it.
  const withStatus = status ? `AND ${hasStatus(status)}` : ''
  const filter = `created_at >= $3 AND (created_at, id) < ($4, $5) ${withStatus}`
  const read = async (candidates: string): Promise<RunOut[]> => {
    return await queryRows<RunOut>(
      db,
      `SELECT ${RUN_COLUMNS} FROM (${candidates}) AS start
       JOIN workflows AS workflow ON workflow.id = start.workflow_id AND ${isVisible('workflow', '$2')}
       WHERE start.organization_id = $1 ORDER BY start.created_at DESC, start.id DESC LIMIT $6`,
      values,
    )
  }
  const starts = startsOfStatus(status)
  // Of a workflow, the organization is compared afterwards: with both, PostgreSQL may read all runs of the
  // organization.
  const rowsOf = (condition: string, rows: string) =>
    `SELECT * FROM ${starts} WHERE ${condition} AND ${filter} ORDER BY created_at DESC, id DESC LIMIT ${rows}`
  if (workflowId !== undefined) return await read(rowsOf(`workflow_id = ${escapeLiteral(workflowId)}`, '$6'))
  if (memberId === null) return await read(rowsOf('organization_id = $1', '$6'))
  const areAllRead = starts !== 'starts'
  const near = await read(rowsOf('organization_id = $1', areAllRead ? 'ALL' : String(Math.max(NEAR_ROWS, limit))))
  if (near.length === limit || areAllRead) return near
  return await read(
    `SELECT newest.* FROM (
       SELECT workflow.id FROM workflows AS workflow WHERE workflow.organization_id = $1 AND ${isVisible('workflow', '$2')}
     ) AS visible CROSS JOIN LATERAL (${rowsOf('workflow_id = visible.id', '$6')}) AS newest`,
  )
}

/** The text in which runs are searched, for their row named `start`. */
export const RUN_TEXT = `concat_ws(' ', start.context, start.id, right(start.id::text, 8), start.session_id,
  right(start.session_id::text, 8), start.request_id)`

/**
 * Whether runs are listed by `searchVisibleRuns`: with a search, those that need attention, and queued ones if too many
 * are to be read at once.
 */
export async function needsSearch(
  db: Db,
  organizationId: string,
  { search, needsAttention, status, sessionId }: Omit<RunSearch, 'limit'>,
): Promise<boolean> {
  if (search?.trim() || needsAttention !== undefined) return true
  return status === 'queued' && sessionId === undefined && (await hasQueueOf(db.pool, organizationId, LONG_QUEUE))
}

type RunSearch = RunQuery & { readonly sessionId?: string | undefined }

/**
 * Ids of the runs that match a search and that the viewer sees, newest first, by the search index. Compares a bounded
 * number, so that a page may have fewer than `limit`, or none, before the last one.
 */
export async function searchVisibleRuns(
  db: Db,
  { organizationId, memberId }: Viewer,
  query: RunSearch,
): Promise<paging.ReadPage<string>> {
  const { status, workflowId, sessionId, needsAttention, since, until, limit, after } = query
  const search = parseSearch(query.search)
  if (!search) return { rows: [], next: undefined }
  const read = async (candidates: Candidates, position: paging.TimePosition | undefined) => {
    const newerThan = 'ids' in candidates ? undefined : candidates.newerThan
    const newest =
      'ids' in candidates
        ? `${rowsWithIds('starts', candidates.ids)} WHERE organization_id = $1`
        : `starts WHERE ${
            needsAttention !== undefined
              ? `organization_id = $1 AND ${NEEDS_ATTENTION}`
              : workflowId
                ? `workflow_id = ${escapeLiteral(workflowId)}`
                : 'organization_id = $1'
          }`
    const { rows } = await db.pool.query<Compared>(
      `SELECT * FROM (SELECT start.id, start.created_at AS "createdAt", ${isVisible('workflow', '$2')}
         AND ($6::uuid IS NULL OR start.workflow_id = $6) AND ($7::uuid IS NULL OR start.session_id = $7)
         AND ($8::text IS NULL OR start.status = $8)
         AND ($13::text IS NULL OR (${NEEDS_ATTENTION} AND ${FAILED_RECENTLY} AND ${ERROR_CODE} = $13))
         AND ${matches(RUN_TEXT, '$9', '$12')} AS "isVisible"
       FROM (
         SELECT * FROM ${newest} AND created_at >= $3 AND (created_at, id) < ($4, $5)
         ORDER BY created_at DESC, id DESC ${'count' in candidates ? `LIMIT ${candidates.count}` : ''}
       ) AS start
       JOIN workflows AS workflow ON workflow.id = start.workflow_id AND workflow.organization_id = $1
       WHERE $10::timestamptz IS NULL OR (start.created_at, start.id) > ($10, $11::uuid)
       ) AS compared WHERE ${'count' in candidates} OR "isVisible" ORDER BY "createdAt" DESC, id DESC`,
      [
        organizationId,
        memberId,
        since ?? '-infinity',
        ...paging.positionParams(position, until),
        workflowId ?? null,
        sessionId ?? null,
        status ?? null,
        search.parts,
        newerThan?.createdAt ?? null,
        newerThan?.id ?? null,
        search.patterns,
        needsAttention ?? null,
      ],
    )
    return rows
  }
  const words = new Set(search.words)
  if (words.size > 0) for (const id of [sessionId, workflowId]) if (id) addWords(id, words)
  return await readFound(db, { organizationId, kind: 'runs', words }, { limit, after, since, until }, read)
}

/** Runs of a session that are read for a page, some of which a filter leaves out or a member does not see. */
const MAX_OF_SESSION_READ = 4_000

/** Runs of one session that the viewer sees, the last one first. */
export async function listRunsOfSession(
  db: Db,
  { organizationId, memberId }: Viewer,
  sessionId: string,
  query: Omit<RunQuery, 'after'> & { readonly after?: RunNumber | undefined },
): Promise<paging.ReadPage<RunOut, RunNumber>> {
  const { status, workflowId, since, until, limit, after } = query
  const read = async (position: RunNumber | undefined, count: number) => {
    const { rows } = await db.pool.query<RunNumber & { id: string; isVisible: boolean }>(
      `SELECT start.id, start.number::float8 AS number, ${isVisible('workflow', '$2')}
         AND start.created_at >= $6 AND start.created_at < $7 AND ($8::text IS NULL OR start.status = $8)
         AND ($9::uuid IS NULL OR start.workflow_id = $9) AS "isVisible"
       FROM (
         SELECT * FROM starts WHERE session_id = $3 AND number < $4 ORDER BY number DESC LIMIT $5
       ) AS start
       JOIN workflows AS workflow ON workflow.id = start.workflow_id
       WHERE start.organization_id = $1 ORDER BY start.number DESC`,
      [
        organizationId,
        memberId,
        sessionId,
        position?.number ?? Number.MAX_SAFE_INTEGER,
        count,
        since ?? '-infinity',
        until ?? 'infinity',
        status ?? null,
        workflowId ?? null,
      ],
    )
    return rows
  }
  const { rows, next } = await paging.readVisible({ limit, after, maxRead: MAX_OF_SESSION_READ }, read, (row) => row)
  const ids = rows.map(({ id }) => id)
  return { rows: await findVisibleRuns(db, { organizationId, memberId }, ids), next }
}

/** Those of the runs with these ids that the viewer sees, in the order of the ids. */
export async function findVisibleRuns(
  db: Db,
  { organizationId, memberId }: Viewer,
  ids: readonly string[],
): Promise<RunOut[]> {
  return await queryRows<RunOut>(
    db,
    // OFFSET 0 makes PostgreSQL begin with the runs, and not with all runs of a workflow.
    `SELECT ${RUN_COLUMNS} FROM (SELECT * FROM starts WHERE id = ANY ($3::uuid[]) OFFSET 0) AS start
     JOIN workflows AS workflow ON workflow.id = start.workflow_id AND ${isVisible('workflow', '$2')}
     WHERE start.organization_id = $1 ORDER BY array_position($3::uuid[], start.id)`,
    [organizationId, memberId, ids],
  )
}

/** The steps of a run that are read, and the bytes of its larger ones. */
const MAX_STEPS = 500
const SMALL_STEP_BYTES = 4_096
const MAX_STEP_BYTES = 2 * 1_048_576

/** The first steps of a run's journal; large ones beyond MAX_STEP_BYTES are `{ omitted_bytes }`. */
export async function readBoundedSteps(db: Db, runId: string): Promise<RunDetailOut['steps']> {
  const rows = await queryRows<RunDetailOut['steps'][number] & { earlierSteps: NewJournalStep[] | null }>(
    db,
    `SELECT position, kind, created_at,
       CASE WHEN is_shown THEN data ELSE json_build_object('omitted_bytes', bytes) END AS data,
       CASE WHEN is_shown THEN earlier_steps END AS "earlierSteps"
     FROM (
       SELECT *, bytes <= ${SMALL_STEP_BYTES}
         OR sum(bytes) FILTER (WHERE bytes > ${SMALL_STEP_BYTES}) OVER (ORDER BY position) <= ${MAX_STEP_BYTES} AS is_shown
       FROM (
         SELECT position, kind, created_at, data, earlier_steps,
           octet_length(data::text) + coalesce(octet_length(earlier_steps::text), 0) AS bytes
         FROM run_steps WHERE run_id = $1 ORDER BY position LIMIT ${MAX_STEPS}
       ) AS step
     ) AS measured ORDER BY position`,
    [runId],
  )
  return rows.flatMap((row) => stepsOfRow(row))
}

type UsedByRun = Pick<RunDetailOut, 'input_tokens' | 'output_tokens' | 'cost_micros' | 'currency'>

/** A run that the viewer sees, with its journal and deliveries, bounded. */
export async function findVisibleRun(
  db: Db,
  { organizationId, memberId }: Viewer,
  runId: string,
): Promise<RunDetailOut | undefined> {
  const [run] = await queryRows<Omit<RunDetailOut, keyof UsedByRun | 'steps' | 'deliveries' | 'approvals'>>(
    db,
    `SELECT ${RUN_COLUMNS}, start.context, start.input_message, start.request_id,
       ${waitsForSource('start')} AS waits_for_source
     FROM starts AS start
     JOIN workflows AS workflow ON workflow.id = start.workflow_id AND ${isVisible('workflow', '$2')}
     WHERE start.organization_id = $1 AND start.id = $3`,
    [organizationId, memberId, runId],
  )
  if (!run) return undefined
  const { rows: used } = await db.pool.query<UsedByRun>(
    `SELECT coalesce(sum(input_tokens), 0)::float8 AS input_tokens,
       coalesce(sum(output_tokens), 0)::float8 AS output_tokens, sum(cost_micros)::float8 AS cost_micros,
       max(currency) AS currency
     FROM run_steps, json_to_record(data)
       AS used (input_tokens bigint, output_tokens bigint, cost_micros bigint, currency text)
     WHERE run_id = $1 AND kind IN ('model_answer', 'session_summary')`,
    [runId],
  )
  // Before the deliveries: a planned payload without one was not sent.
  const steps = await readBoundedSteps(db, runId)
  const deliveries = await listDeliveriesOfRun(db, organizationId, runId)
  const approvals = await listApprovalsOfRun(db, organizationId, runId)
  return { ...run, ...used[0]!, steps, deliveries, approvals }
}
