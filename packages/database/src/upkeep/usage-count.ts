import type { USAGE_GROUPS } from '@workflow-service/contract'
import {
  column,
  type Db,
  NIL_UUID,
  type RowOfStatement,
  runStatement,
  type Statement,
  statement,
} from '../connection/index.ts'

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
const BATCH_SIZE = 5_000

/**
 * The upper limit of a class of durations in relation to that of the one before. A duration differs from the middle of
 * its class, the geometric mean of the limits, by less than 5 %. Rows of before version 010 have limits of classes of
 * 25 %.
 */
const CLASS_FACTOR = 1.1

interface Group {
  readonly workflow_id: string | null
  readonly api_key_id: string | null
  readonly label: string
  readonly run_class: string | null
  readonly count: number
  readonly sum_ms: number
  readonly tokens: number
  readonly cost_micros: number
}

/** The answers of a model. */
type ModelGroup = Pick<Group, 'label' | 'count' | 'tokens' | 'cost_micros'>

/** The calls of a look-up, and the bytes of its answers. */
interface LookupGroup extends Pick<Group, 'workflow_id' | 'api_key_id'> {
  readonly lookup_id: string | null
  readonly calls: number
  readonly bytes: number
}

type Batch = RowOfStatement<typeof COUNT_STARTS>

const BATCH = {
  groups: column.json<readonly Group[]>().orNull,
  models: column.json<readonly ModelGroup[]>().orNull,
  lookups: column.json<readonly LookupGroup[]>().orNull,
  rows: column.integer,
  last_created_at: column.timestamptz,
  last_id: column.uuid,
}

const COUNT_STARTS = statement('upkeep/count-starts', BATCH, { CLASS_FACTOR })
const COUNT_DELIVERIES = statement('upkeep/count-deliveries', BATCH)

interface CountLimits {
  readonly maxRows?: number
  readonly pace?: (() => Promise<void>) | undefined
}

/** Counts rows by the columns of `usage_hours`. */
class UsageCounter {
  readonly rows = new Map<string, UsageRow>()

  add(kind: UsageKind, thingId: string | null, measure: Measure, group: Omit<Group, 'workflow_id' | 'api_key_id'>) {
    const label = measure === 'run_ms' ? (group.run_class ?? '') : group.label
    const key = `${kind} ${thingId} ${measure} ${label}`
    const row = this.rows.get(key)
    if (row) {
      row.count += group.count
      row.sum_ms += group.sum_ms
      row.tokens += group.tokens
      row.cost_micros += group.cost_micros
    } else {
      const { count, sum_ms, tokens, cost_micros } = group
      this.rows.set(key, { kind, thing_id: thingId ?? NIL_UUID, measure, label, count, sum_ms, tokens, cost_micros })
    }
  }
}

/** Counts in batches; `maxRows` bounds the rows of one kind that are read, and `pace` may pause after each batch. */
export async function countPeriod(
  db: Db,
  period: Period,
  { maxRows = Infinity, pace }: CountLimits = {},
): Promise<UsageCounter> {
  const counter = new UsageCounter()
  const onModel = (model: ModelGroup): void =>
    counter.add('model', NIL_UUID, 'answers', { ...model, run_class: null, sum_ms: 0 })
  const onLookup = ({ workflow_id, api_key_id, lookup_id, ...sums }: LookupGroup): void => {
    const none = { run_class: null, sum_ms: 0, tokens: 0, cost_micros: 0 }
    for (const label of ['calls', 'bytes'] as const) {
      const group = { ...none, label, count: sums[label] }
      counter.add('workflow', workflow_id, 'lookups', group)
      counter.add('api_key', api_key_id, 'lookups', group)
      counter.add('lookup', lookup_id, 'lookups', group)
    }
  }
  const onStarts = (group: Group): void => {
    const things = [
      ['organization', NIL_UUID],
      ['workflow', group.workflow_id],
      ['api_key', group.api_key_id],
    ] as const
    for (const [kind, id] of things) {
      counter.add(kind, id, 'starts', { ...group, sum_ms: 0 })
      if (group.run_class !== null) counter.add(kind, id, 'run_ms', { ...group, tokens: 0, cost_micros: 0 })
    }
  }
  await forEachBatch(db, COUNT_STARTS, period, [], { maxRows, pace }, onStarts, onModel, onLookup)
  for (const sourceId of await listActiveSources(db, period)) {
    await forEachBatch(db, COUNT_DELIVERIES, period, [sourceId], { maxRows, pace }, (group) => {
      counter.add('organization', NIL_UUID, 'deliveries', group)
      counter.add('workflow', group.workflow_id, 'deliveries', group)
      counter.add('api_key', group.api_key_id, 'deliveries', group)
      counter.add('webhook_source', sourceId, 'deliveries', group)
    })
  }
  return counter
}

async function forEachBatch(
  db: Db,
  counting: Statement<Batch>,
  { organizationId, since, until }: Period,
  further: readonly unknown[],
  { maxRows, pace }: CountLimits & { readonly maxRows: number },
  onGroup: (group: Group) => void,
  onModel: (group: ModelGroup) => void = () => {},
  onLookup: (group: LookupGroup) => void = () => {},
): Promise<void> {
  let createdAt: Date | string = '-infinity'
  let id = NIL_UUID
  for (let read = 0; read < maxRows;) {
    const values: unknown[] = [organizationId, since, until, createdAt, id, BATCH_SIZE, ...further]
    const batch: Batch | undefined = (await runStatement(db, counting, values)).rows[0]
    for (const group of batch?.groups ?? []) onGroup(group)
    for (const model of batch?.models ?? []) onModel(model)
    for (const lookup of batch?.lookups ?? []) onLookup(lookup)
    await pace?.()
    if (!batch || batch.rows < BATCH_SIZE) return
    read += batch.rows
    createdAt = batch.last_created_at
    id = batch.last_id
  }
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
