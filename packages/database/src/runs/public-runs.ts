import type { PublicRunOut, PublicSessionOut } from '@workflow-service/contract'
import { type Db, queryRows } from '../connection/index.ts'

/** What an API key reads of runs and sessions: everything of its organization. */

const MAX_DELIVERIES = 200
const MAX_RUNS = 20

const RUN_COLUMNS = `id, workflow_id, session_id, number::float8 AS number, status,
  CASE WHEN error IS NOT NULL THEN json_build_object(
    'code', split_part(error, ': ', 1), 'message', substr(error, length(split_part(error, ': ', 1)) + 3)
  ) END AS error,
  created_at, started_at, finished_at`

/** Reads a run of the organization with its first 200 deliveries, without those that repeat an earlier one. */
export async function findPublicRun(db: Db, organizationId: string, runId: string): Promise<PublicRunOut | undefined> {
  const [run] = await queryRows<Omit<PublicRunOut, 'deliveries'>>(
    db,
    { name: 'find-public-run', text: `SELECT ${RUN_COLUMNS} FROM starts WHERE organization_id = $1 AND id = $2` },
    [organizationId, runId],
  )
  if (!run) return undefined
  const deliveries = await queryRows<PublicRunOut['deliveries'][number]>(
    db,
    {
      name: 'list-public-deliveries',
      text: `SELECT id, source_id, coalesce((
         SELECT name FROM webhook_sources WHERE organization_id = $1 AND webhook_sources.id = deliveries.source_id
       ), '') AS source_name, outcome, status, created_at
     FROM deliveries WHERE run_id = $2 AND organization_id = $1 AND resend_of IS NULL
     ORDER BY created_at, id LIMIT ${MAX_DELIVERIES}`,
    },
    [organizationId, runId],
  )
  return { ...run, deliveries }
}

/** Reads a session of the organization with its latest runs. */
export async function findPublicSession(
  db: Db,
  organizationId: string,
  sessionId: string,
): Promise<PublicSessionOut | undefined> {
  const [session] = await queryRows<Omit<PublicSessionOut, 'runs'>>(
    db,
    {
      name: 'find-public-session',
      text: `SELECT id, is_open, last_start_number::float8 AS start_count, created_at, closed_at FROM sessions
     WHERE organization_id = $1 AND id = $2`,
    },
    [organizationId, sessionId],
  )
  if (!session) return undefined
  const runs = await queryRows<PublicSessionOut['runs'][number]>(
    db,
    {
      name: 'list-public-runs',
      text: `SELECT ${RUN_COLUMNS} FROM starts WHERE session_id = $1 ORDER BY number DESC LIMIT ${MAX_RUNS}`,
    },
    [sessionId],
  )
  return { ...session, runs }
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
