import type { Database } from './client.ts'
import { newId } from './ids.ts'

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

/** Opens a session: a new one, or a closed one again. Null when the id is that of another organization's session. */
export async function openSession(
  db: Pick<Database, 'pool'>,
  organizationId: string,
  sessionId: string = newId(),
): Promise<SessionRow | null> {
  const { rows } = await db.pool.query<SessionRow>(
    `INSERT INTO sessions (id, organization_id) VALUES ($2, $1)
     ON CONFLICT (id) DO UPDATE SET is_open = true, closed_at = NULL WHERE sessions.organization_id = $1
     RETURNING id, organization_id, is_open, created_at, closed_at,
       last_start_number::float8 AS starts, last_finished_number::float8 AS finished,
       CASE WHEN lease_owner IS NOT NULL
         THEN json_build_object('owner', lease_owner, 'epoch', lease_epoch,
           'until', to_char(lease_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) END AS lease`,
    [organizationId, sessionId],
  )
  return rows[0] ?? null
}

/** Closes a session. Null when the organization has none with this id. Accepted starts still run. */
export async function closeSession(
  db: Pick<Database, 'pool'>,
  organizationId: string,
  sessionId: string,
): Promise<SessionRow | null> {
  const { rows } = await db.pool.query<SessionRow>(
    `UPDATE sessions SET is_open = false, closed_at = coalesce(closed_at, now())
     WHERE organization_id = $1 AND id = $2
     RETURNING id, organization_id, is_open, created_at, closed_at,
       last_start_number::float8 AS starts, last_finished_number::float8 AS finished,
       CASE WHEN lease_owner IS NOT NULL
         THEN json_build_object('owner', lease_owner, 'epoch', lease_epoch,
           'until', to_char(lease_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) END AS lease`,
    [organizationId, sessionId],
  )
  return rows[0] ?? null
}
