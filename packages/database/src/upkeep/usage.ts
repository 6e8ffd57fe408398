import type { USAGE_GROUPS, UsageOut } from '@workflow-service/contract'
import {
  type Db,
  float8,
  integer,
  inTransaction,
  json,
  NIL_UUID,
  orNull,
  type RowOfStatement,
  runStatement,
  statement,
  type Statement,
  text,
  timestamptz,
  uuid,
} from '../connection/index.ts'
import { isVisible, type Viewer } from '../organizations/index.ts'

type UsageKind = 'organization' | (typeof USAGE_GROUPS)[number]
type Measure = 'starts' | 'deliveries' | 'run_ms'

/** One row of `usage_hours`. The label of `run_ms` is the middle of a class of durations in milliseconds. */
interface UsageRow {
  readonly kind: UsageKind
  readonly thing_id: string
  readonly measure: Measure
  readonly label: string
  count: number
  sum_ms: number
  tokens: number
}

const HOUR_MS = 3_600_000
const BATCH_SIZE = 5_000
/** The starts, and the deliveries of a source, of the hours that are not rolled up yet which a request counts. */
const MAX_LIVE_ROWS = 20_000
/**
 * The upper limit of a class of durations in relation to that of the one before. A duration differs from the middle of its class, the
 * geometric mean of the limits, by less than 5 %. Rows of before version 010 have limits of classes of 25 %.
 */
const CLASS_FACTOR = 1.1

/** What is counted: the starts and deliveries that were recorded in a period. */
interface Period {
  readonly organizationId: string
  readonly since: Date
  readonly until: Date
}

interface Group {
  readonly workflow_id: string | null
  readonly api_key_id: string | null
  readonly label: string
  readonly run_class: string | null
  readonly count: number
  readonly sum_ms: number
  readonly tokens: number
}

type Batch = RowOfStatement<typeof COUNT_STARTS>

const COUNT_STARTS = statement(
  'upkeep/count-starts',
  { groups: orNull(json<readonly Group[]>()), rows: integer, last_created_at: timestamptz, last_id: uuid },
  { CLASS_FACTOR },
)

const COUNT_DELIVERIES = statement('upkeep/count-deliveries', {
  groups: orNull(json<readonly Group[]>()),
  rows: integer,
  last_created_at: timestamptz,
  last_id: uuid,
})

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
    } else {
      const { count, sum_ms, tokens } = group
      this.rows.set(key, { kind, thing_id: thingId ?? NIL_UUID, measure, label, count, sum_ms, tokens })
    }
  }
}

/** Counts in batches; `maxRows` bounds the rows of one kind that are read. */
async function countPeriod(db: Db, period: Period, maxRows = Infinity): Promise<UsageCounter> {
  const counter = new UsageCounter()
  await forEachBatch(db, COUNT_STARTS, period, [], maxRows, (group) => {
    const things = [
      ['organization', NIL_UUID],
      ['workflow', group.workflow_id],
      ['api_key', group.api_key_id],
    ] as const
    for (const [kind, id] of things) {
      counter.add(kind, id, 'starts', { ...group, sum_ms: 0 })
      if (group.run_class !== null) counter.add(kind, id, 'run_ms', { ...group, tokens: 0 })
    }
  })
  for (const sourceId of await listActiveSources(db, period)) {
    await forEachBatch(db, COUNT_DELIVERIES, period, [sourceId], maxRows, (group) => {
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
  maxRows: number,
  onGroup: (group: Group) => void,
): Promise<void> {
  let createdAt: Date | string = '-infinity'
  let id = NIL_UUID
  for (let read = 0; read < maxRows;) {
    const values: unknown[] = [organizationId, since, until, createdAt, id, BATCH_SIZE, ...further]
    const batch: Batch | undefined = (await runStatement(db, counting, values)).rows[0]
    for (const group of batch?.groups ?? []) onGroup(group)
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

/** An arbitrary number: the advisory lock of the process that rolls up. */
const ROLL_UP_LOCK = 1_970_324_836
/** Deliveries have an outcome by then; hours with runs that have not ended are rolled up again. */
const DELAY_MINUTES = 2
const MAX_HISTORY_DAYS = 92
/** Until then, an hour with runs that had not ended is rolled up again. */
const REPEAT_DAYS = 7

/**
 * SQL for the end of the hours whose rows are counted, or are older than what is ever counted; null while nothing was rolled up.
 * Rows that are deleted before would be missing in the usage.
 */
export const COUNTED_UNTIL = `(
  SELECT greatest(hour + interval '1 hour', now() - interval '${MAX_HISTORY_DAYS + 1} days')
  FROM usage_rollups ORDER BY hour DESC LIMIT 1
)`

/** SQL for the hours that may be counted again. */
export const HOURS_COUNTED_AGAIN = `(
  SELECT hour FROM usage_rollups WHERE has_unfinished AND hour > now() - interval '${REPEAT_DAYS + 1} days'
)`

/**
 * Rolls up the closed hours that are not yet, oldest first, and again those in which runs had not ended. Only one process does
 * it at a time, and a process that dies leaves nothing half-written: the next one repeats the hour. Resolves to the hours.
 */
export async function rollUpUsage(db: Db, signal?: AbortSignal): Promise<readonly Date[]> {
  const client = await db.pool.connect()
  client.on('error', ignore)
  let failure: Error | undefined
  try {
    const lock = await client.query<{ is_locked: boolean }>('SELECT pg_try_advisory_lock($1) AS is_locked', [
      ROLL_UP_LOCK,
    ])
    if (!lock.rows[0]?.is_locked) return []
    const done: Date[] = []
    try {
      for (;;) {
        const hour = signal?.aborted ? undefined : await findHourToRollUp(db)
        if (!hour || !(await rollUpHour(db, hour, signal))) return done
        done.push(hour)
      }
    } finally {
      await client.query('SELECT pg_advisory_unlock($1)', [ROLL_UP_LOCK])
    }
  } catch (error) {
    failure = error as Error
    throw error
  } finally {
    client.off('error', ignore)
    // After an error the connection is closed, which releases the lock.
    client.release(failure)
  }
}

function ignore(): void {}

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
         ORDER BY rolled_up_at LIMIT 1
       )
     ) AS hour`,
  )
  return rows[0]?.hour ?? undefined
}

/** Rolls up one hour of all organizations. False if it was aborted between two of them: the hour is repeated. */
async function rollUpHour(db: Db, hour: Date, signal: AbortSignal | undefined): Promise<boolean> {
  const period = { since: hour, until: new Date(hour.getTime() + HOUR_MS) }
  let hasUnfinished = false
  let after = NIL_UUID
  for (;;) {
    const organizations = await listOrganizationsAfter(db, after, period)
    for (const { id: organizationId, isActive } of organizations) {
      if (signal?.aborted) return false
      if (!isActive) continue
      const { rows } = await countPeriod(db, { organizationId, ...period })
      const list = [...rows.values()]
      hasUnfinished ||= list.some(
        ({ measure, label }) => measure === 'starts' && /^(queued|running|waiting)$/.test(label),
      )
      await writeHour(db, organizationId, hour, list)
    }
    const last = organizations.at(-1)
    if (!last) break
    after = last.id
  }
  await db.pool.query(
    `INSERT INTO usage_rollups (hour, has_unfinished) VALUES ($1, $2)
     ON CONFLICT (hour) DO UPDATE SET has_unfinished = excluded.has_unfinished, rolled_up_at = now()`,
    [hour, hasUnfinished],
  )
  return true
}

/** The next 500 organizations by id, and whether each has a start or a delivery in the period. */
async function listOrganizationsAfter(
  db: Db,
  id: string,
  { since, until }: Pick<Period, 'since' | 'until'>,
): Promise<{ id: string; isActive: boolean }[]> {
  const { rows } = await db.pool.query<{ id: string; isActive: boolean }>(
    `SELECT organization.id, coalesce(
       (
         SELECT true FROM starts
         WHERE organization_id = organization.id AND created_at >= $2 AND created_at < $3 LIMIT 1
       ),
       (
         SELECT true FROM webhook_sources AS source CROSS JOIN LATERAL (
           SELECT true FROM deliveries WHERE source_id = source.id AND created_at >= $2 AND created_at < $3 LIMIT 1
         ) AS active WHERE source.organization_id = organization.id LIMIT 1
       ),
       false
     ) AS "isActive"
     FROM organizations AS organization WHERE organization.id > $1 ORDER BY organization.id LIMIT 500`,
    [id, since, until],
  )
  return rows
}

async function writeHour(db: Db, organizationId: string, hour: Date, rows: readonly UsageRow[]): Promise<void> {
  await inTransaction(db, async (client) => {
    await client.query(
      `DELETE FROM usage_hours WHERE organization_id = $1 AND hour = $2
         AND kind IN ('organization', 'workflow', 'webhook_source', 'api_key')`,
      [organizationId, hour],
    )
    // The organization may be deleted meanwhile.
    await client.query(
      `INSERT INTO usage_hours (organization_id, kind, hour, thing_id, measure, label, count, sum_ms, tokens)
       SELECT organization.id, kind, $2, thing_id, measure, label, count, sum_ms, tokens
       FROM json_to_recordset($3::json)
         AS row (kind text, thing_id uuid, measure text, label text, count bigint, sum_ms bigint, tokens bigint)
       JOIN organizations AS organization ON organization.id = $1
       ON CONFLICT (organization_id, kind, hour, thing_id, measure, label)
         DO UPDATE SET (count, sum_ms, tokens) = (excluded.count, excluded.sum_ms, excluded.tokens)`,
      [organizationId, hour, JSON.stringify(rows)],
    )
  })
}

/** The end of the hours that are rolled up, at the earliest `since`. */
async function findLiveSince(db: Db, since: Date): Promise<Date> {
  const { rows } = await db.pool.query<{ hour: Date }>(
    `SELECT greatest($1, max(hour) + interval '1 hour') AS hour FROM usage_rollups`,
    [since],
  )
  return rows[0]?.hour ?? since
}

/** Starts by status and deliveries by outcome in the last 24 hours, to the hour; for a member those of the workflows that the member sees. */
export async function countLastDay(
  db: Db,
  viewer: Viewer,
): Promise<Record<'starts' | 'deliveries', Record<string, number>>> {
  const now = Date.now()
  const since = new Date(now - (now % HOUR_MS) - 23 * HOUR_MS)
  const counts: Record<'starts' | 'deliveries', Record<string, number>> = { starts: {}, deliveries: {} }
  const period = { organizationId: viewer.organizationId, since, until: new Date(now + HOUR_MS) }
  for (const row of await readRows(db, viewer, period, 'organization')) {
    if (row.measure === 'run_ms') continue
    const { [row.measure]: byLabel } = counts
    byLabel[row.label] = (byLabel[row.label] ?? 0) + row.count
  }
  return counts
}

async function countKind(db: Db, period: Period, kind: UsageKind): Promise<UsageRow[]> {
  const { rows } = await countPeriod(db, period, MAX_LIVE_ROWS)
  return [...rows.values()].filter((row) => row.kind === kind)
}

/** Whether the viewer, `$4`, sees a workflow. */
const isSeen = (workflowId: string) =>
  `(SELECT ${isVisible('workflow', '$4')} FROM workflows AS workflow WHERE workflow.id = ${workflowId})`

const COUNT_TOTALS = statement(
  'upkeep/count-totals',
  {
    kind: text<UsageKind>(),
    thing_id: text(),
    measure: text<Measure>(),
    label: text(),
    count: float8,
    sum_ms: integer,
    tokens: integer,
  },
  { NIL_UUID, MAX_LIVE_ROWS, IS_SEEN: isSeen('counted.workflow_id') },
)

type HourRow = UsageRow & { readonly bucket: Date }

/**
 * Rows of the hours of a period: stored ones by bucket, and those counted now, which are in the buckets of their beginning. The
 * totals of a member are those of the workflows that the member sees, and of deliveries without one.
 */
async function readRows(
  db: Db,
  { memberId }: Viewer,
  period: Period,
  kind: UsageKind,
  unit: 'hour' | 'day' = 'hour',
): Promise<HourRow[]> {
  const { organizationId, since, until } = period
  const isTotal = kind === 'organization'
  const isOfMember = isTotal && memberId !== null
  const liveSince = await findLiveSince(db, since)
  const { rows } = await db.pool.query<HourRow>(
    `SELECT * FROM (
       SELECT date_trunc($6, hour, 'UTC') AS bucket, kind, thing_id, measure, label, sum(count)::float8 AS count,
         sum(sum_ms)::float8 AS sum_ms, sum(tokens)::float8 AS tokens
       FROM usage_hours
       WHERE organization_id = $1 AND kind = $5 AND hour >= $2 AND hour < $3
       GROUP BY 1, 2, 3, 4, 5
     ) AS used WHERE $4::uuid IS NULL OR thing_id = '${NIL_UUID}' OR ${isSeen('used.thing_id')}`,
    [
      organizationId,
      since,
      liveSince < until ? liveSince : until,
      isOfMember ? memberId : null,
      isOfMember ? 'workflow' : kind,
      unit,
    ],
  )
  if (liveSince >= until) return rows
  // By hour, so that each row has its bucket; at most the hours for which the bound leaves rows.
  const firstLive = Math.max(liveSince.getTime(), Date.now() - 3 * HOUR_MS)
  for (let from = firstLive - (firstLive % HOUR_MS); from < until.getTime(); from += HOUR_MS) {
    const hour = { organizationId, since: new Date(from), until: new Date(Math.min(from + HOUR_MS, until.getTime())) }
    const counted = isTotal
      ? (await runStatement(db, COUNT_TOTALS, [organizationId, hour.since, hour.until, memberId])).rows
      : await countKind(db, hour, kind)
    const bucket = new Date(unit === 'day' ? from - (from % (24 * HOUR_MS)) : from)
    for (const row of counted) rows.push({ ...row, bucket })
  }
  return rows
}

/** What to report: the last 7 days by default, at most 92 days. */
export interface UsageQuery {
  readonly since?: Date | undefined
  readonly until?: Date | undefined
  readonly by: (typeof USAGE_GROUPS)[number]
}

const MAX_GROUPS = 100
const HOURLY_UNTIL_DAYS = 3
const DAY_MS = 24 * HOUR_MS

/**
 * The usage by hour or day, and by workflow, webhook source or API key. A member's counts only the workflows that the member sees;
 * by webhook source or API key it has nothing, because what others do with them is not the member's to see.
 */
export async function readUsage(db: Db, viewer: Viewer, { since, until, by }: UsageQuery): Promise<UsageOut> {
  const now = Date.now()
  const end = Math.min(until?.getTime() ?? now, now)
  const begin = Math.max(since?.getTime() ?? end - 7 * DAY_MS, end - MAX_HISTORY_DAYS * DAY_MS)
  const bucket = end - begin <= HOURLY_UNTIL_DAYS * DAY_MS ? 'hour' : 'day'
  const bucketMs = bucket === 'hour' ? HOUR_MS : DAY_MS
  const first = begin - (begin % bucketMs)
  const period = { organizationId: viewer.organizationId, since: new Date(first), until: new Date(end) }
  const totals = await readRows(db, viewer, period, 'organization', bucket)
  const buckets = new Map<number, UsageOut['buckets'][number]>()
  for (let at = first; at < end; at += bucketMs) {
    buckets.set(at, { at: new Date(at).toISOString(), starts: {}, deliveries: {} })
  }
  for (const { bucket: at, measure, label, count } of totals) {
    const counts = measure === 'run_ms' ? undefined : buckets.get(at.getTime())?.[measure]
    if (counts) counts[label] = (counts[label] ?? 0) + count
  }
  return {
    bucket,
    buckets: [...buckets.values()],
    groups: await readGroups(db, viewer, period, by),
  }
}

const THINGS = { workflow: 'workflows', webhook_source: 'webhook_sources', api_key: 'api_keys' } as const
const NO_THING = {
  workflow: 'No workflow',
  webhook_source: 'No webhook source',
  api_key: 'Schedule and people',
} as const

async function readGroups(db: Db, viewer: Viewer, period: Period, by: UsageQuery['by']): Promise<UsageOut['groups']> {
  const { organizationId, memberId } = viewer
  if (memberId !== null && by !== 'workflow') return []
  const byThing = Map.groupBy(await readRows(db, viewer, period, by), (row) => row.thing_id)
  const { rows: things } = await db.pool.query<{ id: string; name: string }>(
    `SELECT thing.id, thing.name FROM ${THINGS[by]} AS thing
     WHERE thing.organization_id = $1 AND thing.id = ANY ($2::uuid[])
       AND ${by === 'workflow' ? isVisible('thing', '$3') : '$3::uuid IS NULL'}`,
    [organizationId, [...byThing.keys()], memberId],
  )
  if (byThing.has(NIL_UUID)) things.push({ id: NIL_UUID, name: NO_THING[by] })
  const groups = things.map(({ id, name }) => {
    const starts: Record<string, number> = {}
    const deliveries: Record<string, number> = {}
    const classes: DurationClass[] = []
    let [tokens, total] = [0, 0]
    for (const row of byThing.get(id) ?? []) {
      if (row.measure === 'run_ms') {
        classes.push({ ms: Number(row.label), count: row.count })
        continue
      }
      const counts = row.measure === 'starts' ? starts : deliveries
      counts[row.label] = (counts[row.label] ?? 0) + row.count
      tokens += row.tokens
      total += row.count
    }
    classes.sort((a, b) => a.ms - b.ms)
    return {
      total,
      out: {
        id: id === NIL_UUID ? null : id,
        name,
        starts,
        deliveries,
        run_ms_p50: percentile(classes, 0.5),
        run_ms_p95: percentile(classes, 0.95),
        tokens,
      },
    }
  })
  return groups
    .toSorted((a, b) => b.total - a.total)
    .slice(0, MAX_GROUPS)
    .map(({ out }) => out)
}

interface DurationClass {
  /** Its middle. */
  readonly ms: number
  readonly count: number
}

/** The middle of the class that has the value at this rank; null without values. */
function percentile(classes: readonly DurationClass[], share: number): number | null {
  const total = classes.reduce((sum, { count }) => sum + count, 0)
  let rank = Math.ceil(share * total)
  for (const { ms, count } of classes) {
    rank -= count
    if (rank <= 0) return ms
  }
  return null
}
