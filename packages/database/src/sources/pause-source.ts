import { type Db, inTransaction } from '../connection/index.ts'
import { type AuditedBy, recordAuditEvent } from '../organizations/index.ts'

/** How long a run waits for a paused source (docs/application.md, "Paused sources"). */
export const PAUSE_DAYS = 3

/**
 * Pauses or resumes a webhook source, with its audit event; no change if it is so already. Resolves to whether there is
 * such a source. After a resume, `wakePausedSessions` lets its runs go on.
 */
export async function setSourcePaused(
  db: Db,
  organizationId: string,
  sourceId: string,
  isPaused: boolean,
  by: AuditedBy,
): Promise<boolean> {
  return await inTransaction(db, async (client) => {
    const { rows } = await client.query<{ name: string; isChanged: boolean }>(
      `WITH changed AS (
         UPDATE webhook_sources SET paused_at = CASE WHEN $3 THEN now() END, paused_by_name = CASE WHEN $3 THEN $4 END,
           resumed_at = CASE WHEN $3 THEN NULL ELSE now() END
         WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL AND (paused_at IS NOT NULL) <> $3 RETURNING id
       )
       SELECT name, EXISTS (SELECT FROM changed) AS "isChanged" FROM webhook_sources
       WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL`,
      [organizationId, sourceId, isPaused, by.principal.name],
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

/** How a source is: what waits for it, and whether its endpoint has been failing. */
export interface SourceState {
  /** Runs that wait until it is resumed; at most 1,000 are counted. */
  readonly waiting_runs: number
  /** Its last payloads, when at least 50 in a row were not accepted over at least 10 minutes. */
  readonly failing: { readonly count: number; readonly since: string } | null
}

const FAILING_COUNT = 50
const FAILING_MINUTES = 10
/** Deliveries that are looked at. */
const MAX_READ = 1_000

export async function readSourceState(db: Db, organizationId: string, sourceId: string): Promise<SourceState> {
  const { rows } = await db.pool.query<{ waiting: number; count: number; since: Date | null }>(
    `WITH newest AS MATERIALIZED (
       SELECT created_at, outcome, row_number() OVER (ORDER BY created_at DESC, id DESC) AS position FROM (
         SELECT created_at, id, outcome, kind, organization_id FROM deliveries WHERE source_id = $2
         ORDER BY created_at DESC, id DESC LIMIT ${MAX_READ}
       ) AS read
       WHERE organization_id = $1 AND kind = 'payload' AND outcome NOT IN ('in_flight', 'invalid')
     ),
     streak AS (
       SELECT count(*)::integer AS count, min(created_at) AS since, max(created_at) AS until FROM newest
       WHERE position < coalesce((SELECT min(position) FROM newest WHERE outcome = 'accepted'), ${MAX_READ + 1})
     )
     SELECT (
         SELECT count(*)::integer FROM (
           SELECT FROM sessions WHERE paused_source_id = $2 AND lease_owner IS NULL AND waiting_since > now()
           LIMIT ${MAX_READ}
         ) AS parked
       ) AS waiting, count,
       CASE WHEN count >= ${FAILING_COUNT}
         AND (until - since >= interval '${FAILING_MINUTES} minutes' OR count = ${MAX_READ}) THEN since END AS since
     FROM streak`,
    [organizationId, sourceId],
  )
  const { waiting = 0, count = 0, since = null } = rows[0] ?? {}
  return { waiting_runs: waiting, failing: since && { count, since: since.toISOString() } }
}
