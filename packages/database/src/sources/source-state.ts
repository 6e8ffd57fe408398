import { WAITING_COUNTED_MAX } from '@workflow-service/contract'
import type { Connection } from '../connection/index.ts'

/** How a source is: what waits for it, and whether its endpoint has been failing. */
export interface SourceState {
  /** Runs that wait until it is resumed; at most 1,000 are counted. */
  readonly waiting_runs: number
  /** Its last payloads, when at least 50 in a row were not accepted over at least 10 minutes. */
  readonly failing: { readonly count: number; readonly since: string } | null
}

const FAILING_COUNT = 50
const FAILING_MINUTES = 10

export async function readSourceState(db: Connection, organizationId: string, sourceId: string): Promise<SourceState> {
  const { rows } = await db.pool.query<{ waiting: number; count: number; since: Date | null }>(
    `WITH newest AS MATERIALIZED (
       SELECT created_at, outcome, row_number() OVER (ORDER BY created_at DESC, id DESC) AS position FROM (
         SELECT created_at, id, outcome, kind, organization_id FROM deliveries WHERE source_id = $2
         ORDER BY created_at DESC, id DESC LIMIT ${WAITING_COUNTED_MAX}
       ) AS read
       WHERE organization_id = $1 AND kind = 'payload' AND outcome NOT IN ('in_flight', 'invalid')
     ),
     streak AS (
       SELECT count(*)::integer AS count, min(created_at) AS since, max(created_at) AS until FROM newest
       WHERE position < coalesce((SELECT min(position) FROM newest WHERE outcome = 'accepted'), ${WAITING_COUNTED_MAX + 1})
     )
     SELECT (
         SELECT count(*)::integer FROM (
           SELECT FROM sessions WHERE paused_source_id = $2 AND lease_owner IS NULL AND waiting_since > now()
           LIMIT ${WAITING_COUNTED_MAX}
         ) AS parked
       ) AS waiting, count,
       CASE WHEN count >= ${FAILING_COUNT}
         AND (until - since >= interval '${FAILING_MINUTES} minutes' OR count = ${WAITING_COUNTED_MAX}) THEN since END AS since
     FROM streak`,
    [organizationId, sourceId],
  )
  const { waiting = 0, count = 0, since = null } = rows[0] ?? {}
  return { waiting_runs: waiting, failing: since && { count, since: since.toISOString() } }
}
