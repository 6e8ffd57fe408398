import type { Pool } from 'pg'
import { percentile, tally } from '../shared/figures.ts'
import type { Incident } from '../shared/incidents.ts'

/**
 * Describes how long runs waited for another runner after their runner was killed, and where in their journal they were
 * interrupted. Times count only if nothing else was hit meanwhile.
 */
export async function describeTakeOvers(pool: Pool, incidents: readonly Incident[]): Promise<string> {
  const { rows } = await pool.query<{ at: Date; point: string }>(
    `SELECT note.created_at AS at, CASE earlier.kind WHEN 'tool_call' THEN 'between claim and outcome'
         WHEN 'tool_result' THEN 'after an outcome' ELSE 'before the first claim' END AS point
     FROM run_steps AS note
     LEFT JOIN LATERAL (
       SELECT kind FROM run_steps
       WHERE run_id = note.run_id AND position < note.position AND kind <> 'note' ORDER BY position DESC LIMIT 1
     ) AS earlier ON true
     WHERE note.kind = 'note' AND note.data ->> 'code' = 'taken_up_again' ORDER BY point`,
  )
  const waitedMs = rows.flatMap(({ at }) => {
    const continuedAt = at.getTime()
    const last = incidents.findLast(({ beganAt }) => beganAt < continuedAt)
    if (!last || last.isPause || !/^(runner|compact) /.test(last.name)) return []
    const isAlone = incidents.every(
      (each) => each === last || each.beganAt > continuedAt || each.endedAt < last.beganAt,
    )
    return isAlone ? continuedAt - last.beganAt : []
  })
  const [p50, p95, max] = [0.5, 0.95, 1].map((share) => `${Math.round(percentile(waitedMs, share))} ms`)
  const times = waitedMs.length === 0 ? '' : `after p50 ${p50}, p95 ${p95}, longest ${max} `
  return (
    `runs of a runner that was killed alone continued ${times}(${waitedMs.length} of ${rows.length}); ` +
    `interrupted: ${tally(rows.map(({ point }) => point)) || 'none'}`
  )
}
