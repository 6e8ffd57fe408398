import type { SessionDetailOut, SessionOut } from '@workflow-service/contract'
import type { PoolClient } from 'pg'
import type { Database } from './client.ts'
import { listVisibleRuns } from './run-lists.ts'
import { beforePosition, type TimePosition, type RowOf, toWire, type Viewer } from './viewer.ts'

const SESSION_COLUMNS = `id, is_open, last_start_number::float8 AS start_count,
  (last_start_number - last_finished_number)::float8 AS waiting_count, created_at, closed_at`

/** Which sessions to list. */
export interface SessionQuery {
  readonly isOpen?: boolean | undefined
  readonly limit: number
  readonly after?: TimePosition | undefined
}

/** The organization's sessions, newest first. */
export async function listSessions(
  db: Pick<Database, 'pool'>,
  organizationId: string,
  { isOpen, limit, after }: SessionQuery,
): Promise<readonly SessionOut[]> {
  const { rows } = await db.pool.query<RowOf<SessionOut>>(
    `SELECT ${SESSION_COLUMNS} FROM sessions
     WHERE organization_id = $1 AND (created_at, id) < ($2, $3)
       ${isOpen === undefined ? '' : isOpen ? 'AND is_open' : 'AND NOT is_open'}
     ORDER BY created_at DESC, id DESC LIMIT $4`,
    [organizationId, ...beforePosition(after), limit],
  )
  return rows.map((row) => toWire<SessionOut>(row))
}

const MAX_RUNS = 100

/** A session with its latest runs that the viewer sees. */
export async function findSession(
  db: Pick<Database, 'pool'>,
  viewer: Viewer,
  sessionId: string,
): Promise<SessionDetailOut | undefined> {
  const { rows } = await db.pool.query<RowOf<SessionOut>>(
    `SELECT ${SESSION_COLUMNS} FROM sessions WHERE organization_id = $1 AND id = $2`,
    [viewer.organizationId, sessionId],
  )
  const [session] = rows
  if (!session) return undefined
  const runs = await listVisibleRuns(db, viewer, { sessionId, limit: MAX_RUNS })
  return { ...toWire<SessionOut>(session), runs: runs.toReversed() }
}

/** Creates an open session. False if there is one with this id, in any organization. */
export async function createSession(
  client: Pick<PoolClient, 'query'>,
  organizationId: string,
  sessionId: string,
): Promise<boolean> {
  const { rowCount } = await client.query(
    'INSERT INTO sessions (id, organization_id) VALUES ($2, $1) ON CONFLICT (id) DO NOTHING',
    [organizationId, sessionId],
  )
  return rowCount === 1
}

/** Closes an open session; accepted starts still run. False if the organization has no open session with this id. */
export async function closeOpenSession(
  client: Pick<PoolClient, 'query'>,
  organizationId: string,
  sessionId: string,
): Promise<boolean> {
  const { rowCount } = await client.query(
    'UPDATE sessions SET is_open = false, closed_at = now() WHERE organization_id = $1 AND id = $2 AND is_open',
    [organizationId, sessionId],
  )
  return rowCount === 1
}
