import type { USAGE_GROUPS } from '@workflow-service/contract'
import { column, type Db, NIL_UUID, runStatement, sql, statement } from '../connection/index.ts'

/** What is counted: the starts and deliveries that were recorded in a period. */
export interface Period {
  readonly organizationId: string
  readonly since: Date
  readonly until: Date
}

export type UsageKind = 'organization' | (typeof USAGE_GROUPS)[number]

/** `trials`: the answers of models in trials and evaluations, which are counted when they end, and have no run. */
export type Measure = 'starts' | 'deliveries' | 'run_ms' | 'answers' | 'trials' | 'lookups'

/**
 * One row of `usage_hours`. The label of `run_ms` is the middle of a class of durations in milliseconds, that of
 * `lookups` is `calls` or `bytes`.
 */
export interface UsageRow {
  readonly kind: UsageKind
  readonly thing_id: string
  readonly measure: Measure
  readonly label: string
  count: number
  sum_ms: number
  tokens: number
  /** Millionths of the currency. */
  cost_micros: number
}

export const HOUR_MS = 3_600_000
/** Each run has its journal, which may have megabytes. */
const BATCH_SIZE = 1_000

/**
 * The upper limit of a class of durations in relation to that of the one before. A duration differs from the middle of
 * its class, the geometric mean of the limits, by less than 5 %.
 */
const CLASS_FACTOR = 1.1

const BATCH = {
  usage: column.json<readonly UsageRow[]>().orNull,
  rows: column.integer,
  last_created_at: column.timestamptz,
  last_id: column.uuid,
}
const USAGE_OF_BATCH = sql('upkeep/usage-of-batch', { NIL_UUID })
const COUNT_STARTS = statement('upkeep/count-starts', BATCH, { CLASS_FACTOR, USAGE_OF_BATCH })
const COUNT_DELIVERIES = statement('upkeep/count-deliveries', BATCH, { USAGE_OF_BATCH })

interface CountLimits {
  readonly maxRows?: number
  readonly pace?: (() => Promise<void>) | undefined
}

/** Counts in batches; `maxRows` bounds the rows of one kind that are read, and `pace` may pause after each batch. */
export async function countPeriod(
  db: Db,
  period: Period,
  { maxRows = Infinity, pace }: CountLimits = {},
): Promise<UsageRow[]> {
  const { organizationId, since, until } = period
  const counted = new Map<string, UsageRow>()
  const countBatches = async (counting: typeof COUNT_STARTS, ...further: readonly unknown[]): Promise<void> => {
    let createdAt: Date | string = '-infinity'
    let id = NIL_UUID
    for (let read = 0; read < maxRows;) {
      const values: unknown[] = [organizationId, since, until, createdAt, id, BATCH_SIZE, ...further]
      const { rows } = await runStatement(db, counting, values)
      const batch = rows[0]!
      for (const row of batch.usage ?? []) add(counted, row)
      await pace?.()
      if (batch.rows < BATCH_SIZE) return
      read += batch.rows
      createdAt = batch.last_created_at
      id = batch.last_id
    }
  }
  await countBatches(COUNT_STARTS)
  for (const sourceId of await listActiveSources(db, period)) await countBatches(COUNT_DELIVERIES, sourceId)
  return [...counted.values()]
}

function add(counted: Map<string, UsageRow>, row: UsageRow): void {
  const key = `${row.kind} ${row.thing_id} ${row.measure} ${row.label}`
  const sum = counted.get(key)
  if (!sum) return void counted.set(key, row)
  for (const name of ['count', 'sum_ms', 'tokens', 'cost_micros'] as const) sum[name] += row[name]
}

/** The sources, also the deleted ones, that have a delivery in the period. */
async function listActiveSources(db: Db, { organizationId, since, until }: Period): Promise<string[]> {
  const { rows } = await db.pool.query<{ id: string }>(
    `SELECT source.id FROM webhook_sources AS source
     CROSS JOIN LATERAL (
       SELECT true FROM deliveries WHERE source_id = source.id AND created_at >= $2 AND created_at < $3 LIMIT 1
     ) AS active
     WHERE source.organization_id = $1`,
    [organizationId, since, until],
  )
  return rows.map(({ id }) => id)
}
