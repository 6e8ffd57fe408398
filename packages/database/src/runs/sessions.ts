import { type Db, inTransaction } from '../connection/index.ts'
import {
  assertQuota,
  type AuditAction,
  type AuditedBy,
  isSessionVisible,
  recordAuditEvent,
  type Viewer,
} from '../organizations/index.ts'

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

/** Creates an open session. False if there is one with this id, in any organization. */
export async function createSession(
  db: Db,
  organizationId: string,
  sessionId: string,
  by?: AuditedBy,
): Promise<boolean> {
  return await changeSession(
    db,
    'session.opened',
    'INSERT INTO sessions (id, organization_id) VALUES ($2, $1) ON CONFLICT (id) DO NOTHING',
    [organizationId, sessionId],
    by,
  )
}

/** Opens a session: a new one, or a closed one again. False if it is open already, or another organization's. */
export async function openSession(db: Db, organizationId: string, sessionId: string, by?: AuditedBy): Promise<boolean> {
  if (await createSession(db, organizationId, sessionId, by)) return true
  return await changeSession(
    db,
    'session.opened',
    `UPDATE sessions SET is_open = true, closed_at = NULL, last_used_at = now() WHERE organization_id = $1 AND id = $2 AND NOT is_open`,
    [organizationId, sessionId],
    by,
  )
}

/** Closes an open session; accepted starts still run. False if the viewer sees no open session with this id. */
export async function closeSession(
  db: Db,
  { organizationId, memberId }: Viewer,
  sessionId: string,
  by?: AuditedBy,
): Promise<boolean> {
  return await changeSession(
    db,
    'session.closed',
    `UPDATE sessions SET is_open = false, closed_at = now()
     WHERE organization_id = $1 AND id = $2 AND is_open AND ${isSessionVisible('sessions', '$3')}`,
    [organizationId, sessionId, memberId],
    by,
  )
}

/** Runs a statement, and records an audit event if it changes the session. Resolves to whether it did. */
async function changeSession(
  db: Db,
  action: AuditAction,
  statement: string,
  values: readonly [organizationId: string, sessionId: string, ...unknown[]],
  by: AuditedBy | undefined,
): Promise<boolean> {
  return await inTransaction(db, async (client) => {
    const { rowCount } = await client.query(statement, [...values])
    if (rowCount !== 1) return false
    if (by && action === 'session.opened') await assertQuota(client, by, 'empty_sessions')
    if (by) await recordAuditEvent(client, { ...by, action, target: { kind: 'session', id: values[1], name: null } })
    return true
  })
}
