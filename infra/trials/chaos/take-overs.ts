import { setTimeout as pause } from 'node:timers/promises'
import type { Pool } from 'pg'
import { type Part, watchPart } from '../shared/incidents.ts'
import { percentile } from '../shared/figures.ts'
import type { Service } from '../shared/system.ts'

const POLL_MS = 50

/** Measures how long the sessions of killed runners wait until another runner continues them. */
export function measureTakeOvers(pool: Pool) {
  const waitedMs: number[] = []
  let disturbed = 0
  /** The parts that are down or paused. */
  const hit = new Set<string>()
  const measuring = new Set<Promise<void>>()

  /** Waits for each session that the process has leased. Counts only those during which nothing else was hit. */
  const measure = async (name: string, pid: number, killedMs: number): Promise<void> => {
    let isDisturbed = false
    const { rows } = await pool.query<{ id: string; epoch: string }>(
      `SELECT id, lease_epoch AS epoch FROM sessions WHERE lease_owner LIKE '%/' || $1 || '/%'
       AND last_finished_number < last_start_number AND lease_until > clock_timestamp()`,
      [pid],
    )
    let waiting = rows
    while (waiting.length > 0) {
      isDisturbed ||= [...hit].some((other) => other !== name)
      await pause(POLL_MS)
      const { rows: left } = await pool.query<{ id: string; epoch: string }>(
        `SELECT id, lease_epoch AS epoch FROM sessions
         JOIN unnest($1::uuid[], $2::bigint[]) AS waiting (session_id, epoch)
           ON id = session_id AND lease_epoch = epoch AND lease_owner IS NOT NULL`,
        [waiting.map(({ id }) => id), waiting.map(({ epoch }) => epoch)],
      )
      const continued = waiting.length - left.length
      if (isDisturbed) disturbed += continued
      else for (let each = 0; each < continued; each += 1) waitedMs.push(performance.now() - killedMs)
      waiting = left
    }
  }

  return {
    /** Returns the part, whose incidents are noted; the sessions of a service are measured when it is killed. */
    watch(part: Part, service?: Pick<Service, 'process'>): Part {
      const { name } = part
      const watched = watchPart(
        part,
        () => hit.add(name),
        () => hit.delete(name),
      )
      return {
        ...watched,
        kill: async (signal) => {
          const pid = service?.process.pid
          const killedMs = performance.now()
          await watched.kill(signal)
          if (pid === undefined) return
          // PostgreSQL may be killed meanwhile: then the sessions are not measured.
          const measured = measure(name, pid, killedMs).catch(() => {})
          measuring.add(measured)
          void measured.then(() => measuring.delete(measured))
        },
      }
    },
    /** Describes the times when all sessions that wait have been continued. */
    async describe(): Promise<string> {
      await Promise.all(measuring)
      const [p50, p95, max] = [0.5, 0.95, 1].map((share) => `${Math.round(percentile(waitedMs, share))} ms`)
      const others = `${disturbed} more while another part was hit`
      if (waitedMs.length === 0) return `no session of a runner that was killed alone; ${others}`
      return `sessions of a runner that was killed alone continued after p50 ${p50}, p95 ${p95}, longest ${max} (${waitedMs.length}; ${others})`
    },
  }
}

/** Counts by the last step of the journal where attempts ended whose runs were continued by another one. */
export async function describeInterruptions(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ point: string; count: number }>(
    `SELECT CASE earlier.kind WHEN 'tool_call' THEN 'between claim and outcome' WHEN 'tool_result' THEN 'after an outcome'
         ELSE 'before the first claim' END AS point, count(*)::int AS count
     FROM run_steps AS note
     LEFT JOIN LATERAL (
       SELECT kind FROM run_steps
       WHERE run_id = note.run_id AND position < note.position AND kind <> 'note' ORDER BY position DESC LIMIT 1
     ) AS earlier ON true
     WHERE note.kind = 'note' AND note.data ->> 'code' = 'taken_up_again' GROUP BY point ORDER BY point`,
  )
  return `attempts interrupted ${rows.map(({ point, count }) => `${point}: ${count}`).join(', ') || 'nowhere'}`
}
