import type { SessionDetailOut, SessionOut } from '@workflow-service/contract'
import { datesToIso, type Db, inTransaction, paging, queryRows, type RowOf } from '../connection/index.ts'
import {
  assertQuota,
  type AuditAction,
  type AuditedBy,
  isSessionVisible,
  recordAuditEvent,
  type Viewer,
} from '../organizations/index.ts'
import { FIRST_LINE, listRunsOfSession } from './run-lists.ts'

/** Creates an open session. False if there is one with this id, in any organization. */
export async function createSession(db: Db, sessionId: string, by: AuditedBy): Promise<boolean> {
  const insert = 'INSERT INTO sessions (id, organization_id) VALUES ($2, $1) ON CONFLICT (id) DO NOTHING'
  return await changeSession(db, 'session.opened', insert, sessionId, by)
}

/** Opens a session: a new one, or a closed one again. False if it is open already, or another organization's. */
export async function openSession(db: Db, sessionId: string, by: AuditedBy): Promise<boolean> {
  if (await createSession(db, sessionId, by)) return true
  const open = `UPDATE sessions SET is_open = true, closed_at = NULL, last_used_at = now()
    WHERE organization_id = $1 AND id = $2 AND NOT is_open`
  return await changeSession(db, 'session.opened', open, sessionId, by)
}

/** Closes an open session; accepted starts still run. False if the viewer sees no open session with this id. */
export async function closeSession(
  db: Db,
  { memberId }: Pick<Viewer, 'memberId'>,
  sessionId: string,
  by: AuditedBy,
): Promise<boolean> {
  const close = `UPDATE sessions SET is_open = false, closed_at = now()
    WHERE organization_id = $1 AND id = $2 AND is_open AND ${isSessionVisible('sessions', '$3')}`
  return await changeSession(db, 'session.closed', close, sessionId, by, memberId)
}

/** Runs a statement, and records an audit event if it changes the session. Resolves to whether it did. */
async function changeSession(
  db: Db,
  action: AuditAction,
  statement: string,
  sessionId: string,
  by: AuditedBy,
  ...values: unknown[]
): Promise<boolean> {
  const { organizationId } = by.principal
  return await inTransaction(db, async (client) => {
    // First: a statement that waits for the lock itself goes by the runs of before, also in what the viewer sees.
    const lock = 'SELECT FROM sessions WHERE organization_id = $1 AND id = $2 FOR NO KEY UPDATE'
    if (action === 'session.closed') await client.query(lock, [organizationId, sessionId])
    const { rowCount } = await client.query(statement, [organizationId, sessionId, ...values])
    if (rowCount !== 1) return false
    if (action === 'session.opened') await assertQuota(client, by, 'empty_sessions')
    await recordAuditEvent(client, { ...by, action, target: { kind: 'session', id: sessionId, name: null } })
    return true
  })
}

const columns = (waitingCount: string) => `id, is_open, last_start_number::float8 AS start_count,
  (${waitingCount})::float8 AS waiting_count, created_at, closed_at`

const LATEST_LINE = `coalesce((
    SELECT ${FIRST_LINE} FROM starts AS start WHERE session_id = sessions.id ORDER BY number DESC LIMIT 1
  ), '')`

const IN_QUEUE = 'last_start_number - last_finished_number'

/** The starts of a session that are read to leave out those that were cancelled before their turn. */
const MAX_QUEUE_READ = 1_000
const NOT_ENDED = `${IN_QUEUE} - (
    SELECT count(*) FROM (
      SELECT finished_at FROM starts
      WHERE session_id = sessions.id AND number > last_finished_number ORDER BY number LIMIT ${MAX_QUEUE_READ}
    ) AS queue WHERE finished_at IS NOT NULL
  )`

type ListedSession = Omit<RowOf<SessionOut>, 'id' | 'created_at'> & { readonly id: string; readonly created_at: Date }

export interface SessionQuery {
  readonly isOpen?: boolean | undefined
  readonly limit: number
  readonly after?: paging.TimePosition | undefined
}

/** Sessions that are read for a page of a member, who may not see all of them. */
const MAX_SESSIONS_READ = 1_000

/** The sessions that the viewer sees, newest first. */
export async function listSessions(
  db: Db,
  { organizationId, memberId }: Viewer,
  { isOpen, limit, after }: SessionQuery,
): Promise<paging.ReadPage<SessionOut>> {
  const read = async (position: paging.TimePosition | undefined, count: number) => {
    // OFFSET 0 keeps PostgreSQL from deciding twice for each session whether the viewer sees it.
    const { rows } = await db.pool.query<ListedSession & { readonly isVisible: boolean }>(
      `SELECT sessions.*, CASE WHEN "isVisible" THEN ${LATEST_LINE} END AS first_line FROM (
         SELECT session.*, ${isSessionVisible('session', '$5')} AS "isVisible" FROM (
           SELECT ${columns(IN_QUEUE)} FROM sessions
           WHERE organization_id = $1 AND (created_at, id) < ($2, $3)
             ${isOpen === undefined ? '' : isOpen ? 'AND is_open' : 'AND NOT is_open'}
           ORDER BY created_at DESC, id DESC LIMIT $4
         ) AS session OFFSET 0
       ) AS sessions ORDER BY created_at DESC, id DESC`,
      [organizationId, ...paging.positionParams(position), count, memberId],
    )
    return rows
  }
  const { rows, next } = await paging.readVisible({ limit, after, maxRead: MAX_SESSIONS_READ }, read, (row) => ({
    id: row.id,
    createdAt: row.created_at,
  }))
  return { rows: rows.map(({ isVisible: _isVisible, ...row }) => datesToIso<SessionOut>(row)), next }
}

const MAX_RUNS = 100

/** A session that the viewer sees, with its latest runs. */
export async function findSession(db: Db, viewer: Viewer, sessionId: string): Promise<SessionDetailOut | undefined> {
  const [session] = await findSessions(db, viewer, [sessionId])
  if (!session) return undefined
  const runs = await listRunsOfSession(db, viewer, sessionId, { limit: MAX_RUNS })
  return { ...session, runs: runs.rows.toReversed() }
}

/** Those of the sessions with these ids that the viewer sees, in any order. */
export async function findSessions(
  db: Db,
  { organizationId, memberId }: Viewer,
  ids: readonly string[],
): Promise<SessionOut[]> {
  return await queryRows<SessionOut>(
    db,
    `SELECT ${columns(NOT_ENDED)}, ${LATEST_LINE} AS first_line FROM sessions
     WHERE organization_id = $1 AND id = ANY ($2::uuid[]) AND ${isSessionVisible('sessions', '$3')}`,
    [organizationId, ids, memberId],
  )
}
