import { type Db, inTransaction } from '../connection/index.ts'
import { type AuditedBy, recordAuditEvent } from '../organizations/index.ts'

/** How long a run waits for a paused source (docs/application.md, "Paused sources"). */
export const PAUSE_DAYS = 3

/**
 * Pauses or resumes a webhook source, with its audit event; no change if it is so already. Resolves to whether there is
 * such a source. After a resume, `wakePausedSessions` lets its runs go on.
 */
export async function setSourcePaused(db: Db, sourceId: string, isPaused: boolean, by: AuditedBy): Promise<boolean> {
  const { organizationId, name: pausedBy } = by.principal
  return await inTransaction(db, async (client) => {
    const { rows } = await client.query<{ name: string; isChanged: boolean }>(
      `WITH changed AS (
         UPDATE webhook_sources SET paused_at = CASE WHEN $3 THEN now() END, paused_by_name = CASE WHEN $3 THEN $4 END,
           resumed_at = CASE WHEN $3 THEN NULL ELSE now() END
         WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL AND (paused_at IS NOT NULL) <> $3 RETURNING id
       )
       SELECT name, EXISTS (SELECT FROM changed) AS "isChanged" FROM webhook_sources
       WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL`,
      [organizationId, sourceId, isPaused, pausedBy],
    )
    const [source] = rows
    if (source?.isChanged) {
      await recordAuditEvent(client, {
        ...by,
        action: isPaused ? 'webhook_source.paused' : 'webhook_source.resumed',
        target: { kind: 'webhook_source', id: sourceId, name: source.name },
      })
    }
    return source !== undefined
  })
}

/** Sessions of one statement. */
const BATCH_SIZE = 1_000

/**
 * Makes sessions acquirable whose runs wait for a source that was resumed, in the order of their starts, at most 1,000.
 * Safe to repeat. Resolves to whether others may wait.
 */
export async function wakePausedSessions(db: Db): Promise<boolean> {
  const { rowCount } = await db.pool.query(
    `UPDATE sessions SET paused_source_id = NULL, waiting_since = CASE WHEN waiting_since > now() THEN (
         SELECT created_at FROM starts WHERE session_id = sessions.id AND number = last_finished_number + 1
       ) ELSE waiting_since END
     WHERE id = ANY (ARRAY(
       SELECT session.id FROM webhook_sources AS source
       JOIN sessions AS session ON session.paused_source_id = source.id AND session.lease_owner IS NULL
       WHERE source.resumed_at > now() - interval '${PAUSE_DAYS + 1} days'
       LIMIT ${BATCH_SIZE} FOR NO KEY UPDATE OF session SKIP LOCKED
     ))`,
  )
  return rowCount === BATCH_SIZE
}
