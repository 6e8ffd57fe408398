import { type NoteCode, toNote } from '@workflow-service/contract'
import { type Db, inTransaction } from '../connection/index.ts'
import type { Lease } from '../deliveries/index.ts'
import { PAUSE_DAYS } from '../sources/index.ts'

/** A run whose next payload is for a paused source. */
export interface PausedDelivery {
  readonly lease: Lease
  readonly organizationId: string
  readonly runId: string
  readonly sourceId: string
  /** Where the journal continues. */
  readonly position: number
}

const PAUSED_NOTE: NoteCode = 'source_paused'

/**
 * Parks a run until its source is resumed, for 3 days at most since it first waited for this payload: in one
 * transaction, writes the note, queues the run and releases the session. Locks the source, so that a resume comes
 * either before, and is seen here, or after, and wakes the session. Safe to repeat after a lost answer.
 */
export async function parkForSource(
  db: Db,
  owner: string,
  { lease, organizationId, runId, sourceId, position }: PausedDelivery,
): Promise<'parked' | 'resumed' | 'expired' | 'lease_lost'> {
  return await inTransaction(db, async (client) => {
    const { rows: sources } = await client.query<{ name: string }>(
      `SELECT name FROM webhook_sources
       WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL AND paused_at IS NOT NULL FOR SHARE`,
      [organizationId, sourceId],
    )
    const { rows: sessions } = await client.query<{ isLeased: boolean; isParked: boolean }>(
      `SELECT coalesce(lease_owner = $3, false) AS "isLeased", paused_source_id = $4 AND lease_owner IS NULL AS "isParked"
       FROM sessions WHERE id = $1 AND lease_epoch = $2 FOR NO KEY UPDATE`,
      [lease.sessionId, lease.epoch, owner, sourceId],
    )
    // Without the lease, an earlier call whose answer was lost may have parked the run.
    if (!sessions[0]?.isLeased) return sessions[0]?.isParked ? 'parked' : 'lease_lost'
    const [source] = sources
    if (!source) return 'resumed'
    const { rows: waits } = await client.query<{ until: Date; isOver: boolean; isNew: boolean }>(
      `SELECT until, until <= now() AS "isOver", is_new AS "isNew" FROM (
         SELECT coalesce(min(created_at), now()) + interval '${PAUSE_DAYS} days' AS until, count(*) = 0 AS is_new
         FROM run_steps
         WHERE run_id = $1 AND kind = 'note' AND data->>'code' = '${PAUSED_NOTE}' AND position > coalesce(
           (SELECT max(position) FROM run_steps WHERE run_id = $1 AND kind = 'tool_result'), -1
         )
       ) AS wait`,
      [runId],
    )
    const { until, isOver, isNew } = waits[0]!
    if (isOver) return 'expired'
    if (isNew) {
      const time = until.toISOString().slice(0, 16).replace('T', ' ')
      const text = `${source.name} is paused. The run waits until it is resumed, at latest until ${time} UTC.`
      await client.query(
        `INSERT INTO run_steps (run_id, position, kind, data, epoch) VALUES ($1, $2, 'note', $3, $4)`,
        [runId, position, JSON.stringify(toNote(PAUSED_NOTE, text).data), lease.epoch],
      )
    }
    await client.query(
      `UPDATE starts SET status = 'queued', attempts = attempts - 1 WHERE id = $1 AND status = 'running'`,
      [runId],
    )
    await client.query(
      `UPDATE sessions SET lease_owner = NULL, lease_until = NULL, waiting_since = $2, paused_source_id = $3 WHERE id = $1`,
      [lease.sessionId, until, sourceId],
    )
    return 'parked'
  })
}
