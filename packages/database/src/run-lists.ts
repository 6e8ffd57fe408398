import type { AppDeliveryOut, RunDetailOut, RunOut } from '@workflow-service/contract'
import { escapeLiteral } from 'pg'
import type { Database } from './client.ts'
import { listDeliveriesOfRun } from './delivery-reads.ts'
import { beforePosition, isVisible, type TimePosition, type RowOf, toWire, USER_NAME, type Viewer } from './viewer.ts'

/** Which runs to list: those that match every given filter. */
export interface RunQuery {
  readonly status?: RunOut['status'] | undefined
  readonly workflowId?: string | undefined
  readonly sessionId?: string | undefined
  /** Accepted at this time or later. */
  readonly since?: Date | undefined
  /** Accepted before this time. */
  readonly until?: Date | undefined
  readonly limit: number
  /** Continues after this run: its position in time, or, of one session, its number. */
  readonly after?: TimePosition | { readonly number: number } | undefined
}

/** The runs that one statement reads for a page; a member may not see all of them. */
const NEAR_ROWS = 500

const RUN_COLUMNS = `start.id, json_build_object('id', workflow.id, 'name', workflow.name) AS workflow, start.session_id,
  start.number::float8 AS number, start.status, start.error, start.attempts, start.origin,
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

/**
 * Runs that the viewer sees, newest first; of one session, the last of it first. Reads a bounded number of rows by an index for
 * each filter. Of a member whose workflows ran rarely, it reads the newest runs of each of them.
 */
export async function listVisibleRuns(
  db: Pick<Database, 'pool'>,
  viewer: Viewer,
  query: RunQuery,
): Promise<readonly RunOut[]> {
  const { organizationId, memberId } = viewer
  const { status, workflowId, sessionId, since, until, limit, after } = query
  const [position, number] = after && 'number' in after ? [undefined, after.number] : [after, undefined]
  const values = [
    organizationId,
    memberId,
    since ?? '-infinity',
    ...beforePosition(position, until),
    limit,
    ...(sessionId === undefined ? [] : [number ?? Number.MAX_SAFE_INTEGER]),
  ]
  // Optional filters are part of the text, so that PostgreSQL plans each combination with the index that serves it.
  const withStatus = status ? `AND status = ${escapeLiteral(status)}` : ''
  const filter = `organization_id = $1 AND created_at >= $3 AND (created_at, id) < ($4, $5) ${withStatus}`
  const read = async (candidates: string, order = 'start.created_at DESC, start.id DESC'): Promise<RunOut[]> => {
    const { rows } = await db.pool.query<RowOf<RunOut>>(
      `SELECT ${RUN_COLUMNS} FROM (${candidates}) AS start
       JOIN workflows AS workflow ON workflow.id = start.workflow_id AND ${isVisible('workflow', '$2')}
       ORDER BY ${order} LIMIT $6`,
      values,
    )
    return rows.map((row) => toWire<RunOut>(row))
  }
  const rowsOf = (condition: string, rows: string) =>
    `SELECT * FROM starts WHERE ${filter} ${condition} ORDER BY created_at DESC, id DESC LIMIT ${rows}`
  if (sessionId !== undefined) {
    const ofWorkflow = workflowId ? `AND workflow_id = ${escapeLiteral(workflowId)}` : ''
    // Adding nothing to the times keeps PostgreSQL from reading the runs of all sessions by the index of times.
    const ofSession = `SELECT * FROM starts
      WHERE session_id = ${escapeLiteral(sessionId)} AND number < $7 AND organization_id = $1
        AND created_at + interval '0' >= $3 AND (created_at + interval '0', id) < ($4, $5) ${withStatus} ${ofWorkflow}
      ORDER BY number DESC`
    return await read(memberId === null ? `${ofSession} LIMIT $6` : ofSession, 'start.number DESC')
  }
  if (workflowId !== undefined) return await read(rowsOf(`AND workflow_id = ${escapeLiteral(workflowId)}`, '$6'))
  if (memberId === null) return await read(rowsOf('', '$6'))
  const near = await read(rowsOf('', String(Math.max(NEAR_ROWS, limit))))
  if (near.length === limit) return near
  return await read(
    `SELECT newest.* FROM (
       SELECT workflow.id FROM workflows AS workflow WHERE workflow.organization_id = $1 AND ${isVisible('workflow', '$2')}
     ) AS visible CROSS JOIN LATERAL (${rowsOf('AND workflow_id = visible.id', '$6')}) AS newest`,
  )
}

/** The steps of a run that are read, and the bytes of its larger ones. */
const MAX_STEPS = 500
const SMALL_STEP_BYTES = 4_096
const MAX_STEP_BYTES = 2 * 1_048_576

/** A run that the viewer sees, with its journal and deliveries, bounded. */
export async function findVisibleRun(
  db: Pick<Database, 'pool'>,
  { organizationId, memberId }: Viewer,
  runId: string,
): Promise<RunDetailOut | undefined> {
  const { rows: runs } = await db.pool.query<
    RowOf<Omit<RunDetailOut, 'input_tokens' | 'output_tokens' | 'steps' | 'deliveries'>>
  >(
    `SELECT ${RUN_COLUMNS}, start.context, start.input_message, start.request_id
     FROM starts AS start
     JOIN workflows AS workflow ON workflow.id = start.workflow_id AND ${isVisible('workflow', '$2')}
     WHERE start.organization_id = $1 AND start.id = $3`,
    [organizationId, memberId, runId],
  )
  const [run] = runs
  if (!run) return undefined
  const { rows: steps } = await db.pool.query<RowOf<RunDetailOut['steps'][number]>>(
    `SELECT position, kind, created_at, CASE
         WHEN bytes <= ${SMALL_STEP_BYTES} OR bytes_so_far <= ${MAX_STEP_BYTES} THEN data
         ELSE json_build_object('omitted_bytes', bytes)
       END AS data
     FROM (
       SELECT *, sum(bytes) FILTER (WHERE bytes > ${SMALL_STEP_BYTES}) OVER (ORDER BY position) AS bytes_so_far
       FROM (
         SELECT position, kind, created_at, data, octet_length(data::text) AS bytes
         FROM run_steps WHERE run_id = $1 ORDER BY position LIMIT ${MAX_STEPS}
       ) AS step
     ) AS measured ORDER BY position`,
    [runId],
  )
  const { rows: tokens } = await db.pool.query<{ input_tokens: number; output_tokens: number }>(
    `SELECT coalesce(sum((data->>'input_tokens')::bigint), 0)::float8 AS input_tokens,
       coalesce(sum((data->>'output_tokens')::bigint), 0)::float8 AS output_tokens
     FROM run_steps WHERE run_id = $1 AND kind = 'model_answer'`,
    [runId],
  )
  const deliveries: AppDeliveryOut[] = await listDeliveriesOfRun(db, organizationId, runId)
  return {
    ...toWire<Omit<RunDetailOut, 'input_tokens' | 'output_tokens' | 'steps' | 'deliveries'>>(run),
    input_tokens: tokens[0]?.input_tokens ?? 0,
    output_tokens: tokens[0]?.output_tokens ?? 0,
    steps: steps.map((step) => toWire<RunDetailOut['steps'][number]>(step)),
    deliveries,
  }
}
