import type { PublicRunOut, PublicSessionOut } from '@workflow-service/contract'
import { datesToIso, type Db, type RowOf } from '../connection/index.ts'

/** What an API key reads of runs and sessions: everything of its organization. */

const MAX_DELIVERIES = 200
const MAX_RUNS = 20

const RUN_COLUMNS = `id, workflow_id, session_id, number::float8 AS number, status,
  CASE WHEN error IS NOT NULL THEN json_build_object(
    'code', split_part(error, ': ', 1), 'message', substr(error, length(split_part(error, ': ', 1)) + 3)
  ) END AS error,
  created_at, started_at, finished_at`

/** Reads a run of the organization with its deliveries, except those that a person sent again. */
export async function findPublicRun(db: Db, organizationId: string, runId: string): Promise<PublicRunOut | undefined> {
  const { rows } = await db.pool.query<RowOf<Omit<PublicRunOut, 'deliveries'>>>({
    name: 'find-public-run',
    text: `SELECT ${RUN_COLUMNS} FROM starts WHERE organization_id = $1 AND id = $2`,
    values: [organizationId, runId],
  })
  const [run] = rows
  if (!run) return undefined
  const { rows: deliveries } = await db.pool.query<RowOf<PublicRunOut['deliveries'][number]>>({
    name: 'list-public-deliveries',
    text: `SELECT id, source_id, coalesce((
         SELECT name FROM webhook_sources WHERE organization_id = $1 AND webhook_sources.id = deliveries.source_id
       ), '') AS source_name, outcome, status, created_at
     FROM deliveries WHERE run_id = $2 AND organization_id = $1 AND resend_of IS NULL
     ORDER BY created_at, id LIMIT ${MAX_DELIVERIES}`,
    values: [organizationId, runId],
  })
  return {
    ...datesToIso<Omit<PublicRunOut, 'deliveries'>>(run),
    deliveries: deliveries.map((row) => datesToIso<PublicRunOut['deliveries'][number]>(row)),
  }
}

/** Reads a session of the organization with its latest runs. */
export async function findPublicSession(
  db: Db,
  organizationId: string,
  sessionId: string,
): Promise<PublicSessionOut | undefined> {
  const { rows } = await db.pool.query<RowOf<Omit<PublicSessionOut, 'runs'>>>({
    name: 'find-public-session',
    text: `SELECT id, is_open, last_start_number::float8 AS start_count, created_at, closed_at FROM sessions
     WHERE organization_id = $1 AND id = $2`,
    values: [organizationId, sessionId],
  })
  const [session] = rows
  if (!session) return undefined
  const { rows: runs } = await db.pool.query<RowOf<PublicSessionOut['runs'][number]>>({
    name: 'list-public-runs',
    text: `SELECT ${RUN_COLUMNS} FROM starts WHERE session_id = $1 ORDER BY number DESC LIMIT ${MAX_RUNS}`,
    values: [sessionId],
  })
  return {
    ...datesToIso<Omit<PublicSessionOut, 'runs'>>(session),
    runs: runs.map((row) => datesToIso<PublicSessionOut['runs'][number]>(row)),
  }
}

/** Returns those of the runs that have ended, or do not exist any more. */
export async function findEndedRuns(db: Db, runIds: readonly string[]): Promise<readonly string[]> {
  const { rows } = await db.pool.query<{ id: string }>({
    name: 'find-ended-runs',
    text: `SELECT waiting.id FROM unnest($1::uuid[]) AS waiting (id)
     LEFT JOIN starts ON starts.id = waiting.id WHERE starts.id IS NULL OR finished_at IS NOT NULL`,
    values: [runIds],
  })
  return rows.map(({ id }) => id)
}
