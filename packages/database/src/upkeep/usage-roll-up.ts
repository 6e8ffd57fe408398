import { APPROVAL_DAYS } from '@workflow-service/contract'
import { type Db, doEach, inTransaction, NIL_UUID, withAdvisoryLock } from '../connection/index.ts'
import { organizationPages } from './organization-pages.ts'
import { countPeriod, HOUR_MS, type Period, type UsageRow } from './usage-count.ts'

/** An arbitrary number: the advisory lock of the process that rolls up. */
const ROLL_UP_LOCK = 1_970_324_836

/** Deliveries have an outcome by then; hours with runs that have not ended are rolled up again. */
const DELAY_MINUTES = 2

const MAX_HISTORY_DAYS = 92

/** Until then, an hour with runs that had not ended is rolled up again: longer than a payload waits for an approval. */
const REPEAT_DAYS = APPROVAL_DAYS + 1

/** SQL for the condition that the counts of an organization have failed in the hour, however old it is. */
const HAS_FAILED = `has_failed AND hour > now() - interval '${MAX_HISTORY_DAYS + 1} days'`

/**
 * SQL for the end of the hours whose rows are counted, or are older than what is ever counted; null while nothing was
 * rolled up. Rows that are deleted before would be missing in the usage.
 */
export const COUNTED_UNTIL = `(
  SELECT greatest(hour + interval '1 hour', now() - interval '${MAX_HISTORY_DAYS + 1} days')
  FROM usage_rollups ORDER BY hour DESC LIMIT 1
)`

/** SQL for the condition that an hour is recent, and had runs that had not ended, or counts that failed. */
const IS_UNFINISHED = `has_unfinished AND hour > now() - interval '${REPEAT_DAYS + 1} days'`

/** SQL for the hours that may be counted again. */
export const HOURS_COUNTED_AGAIN = `(SELECT hour FROM usage_rollups WHERE ${IS_UNFINISHED} OR ${HAS_FAILED})`

/**
 * SQL for the first hour that may be counted again with the journals of its runs: counts of one organization that fail
 * for longer do not keep those of all.
 */
export const FIRST_UNFINISHED_HOUR = `(SELECT min(hour) FROM usage_rollups WHERE ${IS_UNFINISHED})`

interface RollUpOptions {
  readonly signal?: AbortSignal
  readonly pace?: () => Promise<void>
}

/**
 * Rolls up the closed hours that are not yet, oldest first, and again those in which runs had not ended. Only one
 * process does it at a time, and a process that dies leaves nothing half-written: the next one repeats the hour.
 * Resolves to the hours.
 * @param options `pace` is called after each batch of rows, and may pause.
 */
export async function rollUpUsage(db: Db, options: RollUpOptions = {}): Promise<readonly Date[]> {
  const done: Date[] = []
  await withAdvisoryLock(db, ROLL_UP_LOCK, async () => {
    for (;;) {
      const hour = options.signal?.aborted ? undefined : await findHourToRollUp(db)
      if (!hour || !(await rollUpHour(db, hour, options))) return
      done.push(hour)
    }
  })
  return done
}

async function findHourToRollUp(db: Db): Promise<Date | undefined> {
  const { rows } = await db.pool.query<{ hour: Date | null }>(
    `WITH closed AS (SELECT date_trunc('hour', now() - interval '${DELAY_MINUTES} minutes') AS until),
     next AS (
       SELECT coalesce(
         (SELECT max(hour) + interval '1 hour' FROM usage_rollups),
         (
           SELECT greatest(date_trunc('hour', now() - interval '${MAX_HISTORY_DAYS} days'), date_trunc('hour', min(created_at)))
           FROM organizations HAVING min(created_at) IS NOT NULL
         )
       ) AS hour
     )
     SELECT coalesce(
       (SELECT hour FROM next, closed WHERE hour < until),
       (
         SELECT hour FROM usage_rollups
         WHERE has_unfinished AND rolled_up_at < now() - interval '30 minutes' AND hour > now() - interval '${REPEAT_DAYS} days'
           OR ${HAS_FAILED} AND rolled_up_at < now() - interval '30 seconds'
         ORDER BY rolled_up_at LIMIT 1
       )
     ) AS hour`,
  )
  return rows[0]?.hour ?? undefined
}

/**
 * Rolls up one hour of all organizations. False if it was aborted between two of them: the hour is repeated. So it is a
 * minute after the counts of an organization failed, which is thrown when those of the others are written.
 */
async function rollUpHour(db: Db, hour: Date, { signal, pace }: RollUpOptions): Promise<boolean> {
  const period = { since: hour, until: new Date(hour.getTime() + HOUR_MS) }
  let hasUnfinished = false
  const failure = await doEach(
    listActive(db, period),
    async (organizationId) => {
      const rows = await countPeriod(db, { organizationId, ...period }, { pace })
      hasUnfinished ||= rows.some(
        ({ measure, label }) => measure === 'starts' && /^(queued|running|waiting)$/.test(label),
      )
      await writeHour(db, organizationId, hour, rows)
    },
    signal,
  )
  if (signal?.aborted) return false
  const hasFailed = failure !== undefined
  await db.pool.query(
    `INSERT INTO usage_rollups (hour, has_unfinished, has_failed) VALUES ($1, $2, $3) ON CONFLICT (hour) DO UPDATE
     SET has_unfinished = excluded.has_unfinished, has_failed = excluded.has_failed, rolled_up_at = now()`,
    [hour, hasUnfinished || hasFailed, hasFailed],
  )
  if (failure) throw failure
  return true
}

/** Yields the organizations that have a start or a delivery in the period. */
async function* listActive(db: Db, { since, until }: Pick<Period, 'since' | 'until'>): AsyncGenerator<string> {
  for await (const ids of organizationPages(db)) {
    const { rows } = await db.pool.query<{ id: string }>(
      `SELECT id FROM unnest($1::uuid[]) AS organization (id) WHERE coalesce(
       (
         SELECT true FROM starts
         WHERE organization_id = organization.id AND created_at >= $2 AND created_at < $3 LIMIT 1
       ),
       (
         SELECT true FROM webhook_sources AS source CROSS JOIN LATERAL (
           SELECT true FROM deliveries WHERE source_id = source.id AND created_at >= $2 AND created_at < $3 LIMIT 1
         ) AS active WHERE source.organization_id = organization.id LIMIT 1
       )
     )`,
      [ids, since, until],
    )
    yield* rows.map(({ id }) => id)
  }
}

/**
 * Writes what an hour has. Counted again, what runs have done only grows, except the runs that had not ended; less of
 * it means that runs were deleted, with their workflow or by `wf`, and stays as it was counted. Each value by itself:
 * the runs that are left may be as many as those that were deleted, and have cost less. So do deliveries with a final
 * outcome; by workflow and key they are counted anew, because those that outlive their run have neither any more.
 */
async function writeHour(db: Db, organizationId: string, hour: Date, rows: readonly UsageRow[]): Promise<void> {
  await inTransaction(db, async (client) => {
    await client.query(
      `DELETE FROM usage_hours WHERE organization_id = $1 AND hour = $2
         AND kind IN ('organization', 'workflow', 'webhook_source', 'api_key', 'model', 'lookup')
         AND (measure = 'starts' AND label IN ('queued', 'running', 'waiting')
           OR measure = 'deliveries' AND (kind IN ('workflow', 'api_key') OR label IN ('in_flight', 'unknown')))`,
      [organizationId, hour],
    )
    // The organization may be deleted meanwhile, with what was counted before.
    await client.query(
      `INSERT INTO usage_hours (organization_id, kind, hour, thing_id, measure, label, count, sum_ms, tokens, cost_micros)
       SELECT organization.id, kind, $2, thing_id, measure, label, count, sum_ms, tokens, cost_micros
       FROM json_to_recordset($3::json)
         AS row (kind text, thing_id uuid, measure text, label text, count bigint, sum_ms bigint, tokens bigint,
           cost_micros bigint)
       JOIN organizations AS organization ON organization.id = $1 AND organization.deleted_at IS NULL
       ON CONFLICT (organization_id, kind, hour, thing_id, measure, label)
         DO UPDATE SET (count, sum_ms, tokens, cost_micros)
           = (greatest(excluded.count, usage_hours.count), greatest(excluded.sum_ms, usage_hours.sum_ms),
             greatest(excluded.tokens, usage_hours.tokens), greatest(excluded.cost_micros, usage_hours.cost_micros))`,
      [organizationId, hour, JSON.stringify(rows)],
    )
  })
}

/** The answers of models in a trial, or in a case of an evaluation. */
interface TrialUsage {
  readonly organizationId: string
  readonly workflowId: string
  readonly answers: readonly { readonly model: string; readonly tokens: number; readonly cost: number }[]
}

/** Adds what a trial used to the hour in which it ended, unless its organization was deleted meanwhile. */
export async function countTrial(db: Db, { organizationId, workflowId, answers }: TrialUsage): Promise<void> {
  if (answers.length === 0) return
  await db.pool.query(
    `INSERT INTO usage_hours (organization_id, kind, hour, thing_id, measure, label, count, sum_ms, tokens, cost_micros)
     SELECT $1, kind, date_trunc('hour', now()), thing_id, 'trials', label, count(*), 0, sum(tokens), sum(cost)
     FROM json_to_recordset($3::json) AS answer (model text, tokens bigint, cost bigint)
     CROSS JOIN LATERAL (VALUES ('organization', '${NIL_UUID}'::uuid, ''), ('workflow', $2, ''),
       ('api_key', '${NIL_UUID}', ''), ('model', '${NIL_UUID}', answer.model)) AS counted (kind, thing_id, label)
     WHERE (SELECT deleted_at FROM organizations WHERE id = $1) IS NULL
     GROUP BY kind, thing_id, label
     ON CONFLICT (organization_id, kind, hour, thing_id, measure, label) DO UPDATE
       SET (count, tokens, cost_micros) = (usage_hours.count + excluded.count, usage_hours.tokens + excluded.tokens,
         usage_hours.cost_micros + excluded.cost_micros)`,
    [organizationId, workflowId, JSON.stringify(answers)],
  )
}
