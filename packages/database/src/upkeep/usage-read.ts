import type { USAGE_GROUPS, UsageOut } from '@workflow-service/contract'
import { column, type Db, NIL_UUID, readClock, runStatement, statement } from '../connection/index.ts'
import { CURRENCY, isVisible, type Viewer } from '../organizations/index.ts'
import { countPeriod, HOUR_MS, type Measure, type Period, type UsageKind, type UsageRow } from './usage-count.ts'

/** The starts, and the deliveries of a source, of the hours that are not rolled up yet which a request counts. */
const MAX_LIVE_ROWS = 20_000

/** The end of the hours that are rolled up, at the earliest `since`. */
async function findLiveSince(db: Db, since: Date): Promise<Date> {
  const { rows } = await db.pool.query<{ hour: Date }>(
    `SELECT greatest($1, max(hour) + interval '1 hour') AS hour FROM usage_rollups`,
    [since],
  )
  return rows[0]?.hour ?? since
}

/**
 * Starts by status and deliveries by outcome in the last 24 hours, to the hour; for a member those of the workflows
 * that the member sees.
 */
export async function countLastDay(db: Db, viewer: Viewer) {
  const now = (await readClock(db.pool)).getTime()
  const since = new Date(now - (now % HOUR_MS) - 23 * HOUR_MS)
  const period = { organizationId: viewer.organizationId, since, until: new Date(now + HOUR_MS), now }
  const rows = await readRows(db, viewer, period, 'organization')
  return { starts: countsByLabel(rows, 'starts'), deliveries: countsByLabel(rows, 'deliveries') }
}

function countsByLabel(rows: readonly UsageRow[], measure: Measure): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const row of rows) {
    if (row.measure === measure) counts[row.label] = (counts[row.label] ?? 0) + row.count
  }
  return counts
}

/** Whether the viewer, `$4`, sees a workflow. */
const isSeen = (workflowId: string) =>
  `(SELECT ${isVisible('workflow', '$4')} FROM workflows AS workflow WHERE workflow.id = ${workflowId})`

const COUNT_TOTALS = statement(
  'upkeep/count-totals',
  {
    kind: column.text<UsageKind>(),
    thing_id: column.text(),
    measure: column.text<Measure>(),
    label: column.text(),
    count: column.float8,
    sum_ms: column.integer,
    tokens: column.integer,
    cost_micros: column.integer,
  },
  { NIL_UUID, MAX_LIVE_ROWS, IS_SEEN: isSeen('counted.workflow_id') },
)

type HourRow = UsageRow & { readonly bucket: Date }

interface PeriodUntilNow extends Period {
  /** The time of the database's clock, in ms. */
  readonly now: number
}

/** How rows are added up; by default, those of all things by hour. */
interface Grouping {
  /** `period`: all in one bucket. */
  readonly unit?: 'hour' | 'day' | 'period' | undefined
  readonly thingId?: string | undefined
}

/**
 * Rows of the hours of a period: stored ones by bucket, and those counted now, which are in the buckets of their
 * beginning. The totals of a member are those of the workflows that the member sees, and of deliveries without one.
 */
async function readRows(
  db: Db,
  { memberId }: Viewer,
  period: PeriodUntilNow,
  kind: UsageKind,
  { unit = 'hour', thingId }: Grouping = {},
): Promise<HourRow[]> {
  const { organizationId, since, until, now } = period
  const isTotal = kind === 'organization'
  const isOfMember = isTotal && memberId !== null
  const liveSince = await findLiveSince(db, since)
  // Added up by PostgreSQL as far as they are shown: with a row for each day of each workflow, a request would read a
  // million. The workflows that a member sees are found once, not for each row.
  const { rows } = await db.pool.query<HourRow>(
    `SELECT ${unit === 'period' ? '$2::timestamptz' : `date_trunc('${unit}', hour, 'UTC')`} AS bucket, kind,
       ${isOfMember ? `'${NIL_UUID}'::uuid AS thing_id` : 'thing_id'}, measure, label, sum(count)::float8 AS count,
       sum(sum_ms)::float8 AS sum_ms, sum(tokens)::float8 AS tokens, sum(cost_micros)::float8 AS cost_micros
     FROM usage_hours
     WHERE organization_id = $1 AND kind = $5 AND hour >= $2 AND hour < $6 AND (hour < $3 OR measure = 'trials')
       AND ($4::uuid IS NULL OR usage_hours.thing_id = '${NIL_UUID}' OR usage_hours.thing_id IN (
         SELECT id FROM workflows AS workflow WHERE organization_id = $1 AND ${isVisible('workflow', '$4')}
       )) ${thingId === undefined ? '' : 'AND usage_hours.thing_id = $7'}
     GROUP BY 1, 2, 3, 4, 5`,
    [
      organizationId,
      since,
      liveSince < until ? liveSince : until,
      isOfMember ? memberId : null,
      isOfMember ? 'workflow' : kind,
      until,
      ...(thingId === undefined ? [] : [thingId]),
    ],
  )
  if (liveSince >= until) return rows
  // By hour, so that each row has its bucket; at most the hours for which the bound leaves rows.
  const firstLive = Math.max(liveSince.getTime(), now - 3 * HOUR_MS)
  for (let from = firstLive - (firstLive % HOUR_MS); from < until.getTime(); from += HOUR_MS) {
    const hour = { organizationId, since: new Date(from), until: new Date(Math.min(from + HOUR_MS, until.getTime())) }
    const counted = isTotal
      ? (await runStatement(db, COUNT_TOTALS, [organizationId, hour.since, hour.until, memberId])).rows
      : (await countPeriod(db, hour, { maxRows: MAX_LIVE_ROWS })).filter((row) => row.kind === kind)
    const bucket = new Date(unit === 'day' ? from - (from % (24 * HOUR_MS)) : from)
    for (const row of counted) rows.push({ ...row, bucket })
  }
  return rows
}

/** What to report: the last 7 days by default. */
export interface UsageQuery {
  readonly since?: Date | undefined
  readonly until?: Date | undefined
  readonly by: (typeof USAGE_GROUPS)[number]
  /** Counts only this workflow, webhook source, API key or look-up. */
  readonly thingId?: string | undefined
}

const MAX_GROUPS = 100
const HOURLY_UNTIL_DAYS = 3

const DAY_MS = 24 * HOUR_MS

/**
 * The usage by hour or day, and by workflow, webhook source, API key, look-up or model. A member's counts only the
 * workflows that the member sees; by the others it has nothing, because what others do with them is not the member's to
 * see.
 */
export async function readUsage(db: Db, viewer: Viewer, { since, until, by, thingId }: UsageQuery): Promise<UsageOut> {
  const now = (await readClock(db.pool)).getTime()
  const end = Math.min(until?.getTime() ?? now, now)
  const begin = since?.getTime() ?? end - 7 * DAY_MS
  const bucket = end - begin <= HOURLY_UNTIL_DAYS * DAY_MS ? 'hour' : 'day'
  const bucketMs = bucket === 'hour' ? HOUR_MS : DAY_MS
  const first = begin - (begin % bucketMs)
  // A day of another time zone begins within one of UTC, of which only the rest is in the period.
  const firstHour = new Date(begin - (begin % HOUR_MS))
  const period = { organizationId: viewer.organizationId, since: firstHour, until: new Date(end), now }
  // Without a thing, only the totals are shown by time.
  const grouping: Grouping = { unit: thingId === undefined ? 'period' : bucket, thingId }
  const used = (await readRows(db, viewer, period, by, grouping)).filter(
    (row) => thingId === undefined || row.thing_id === thingId,
  )
  const groups = await readGroups(db, viewer, by, used)
  // The groups are those that the viewer sees.
  const ofThing = groups.length > 0 ? used : []
  const totals = thingId === undefined ? await readRows(db, viewer, period, 'organization', { unit: bucket }) : ofThing
  const byTime = Map.groupBy(totals, (row) => row.bucket.getTime())
  const buckets: UsageOut['buckets'] = []
  for (let at = first; at < end; at += bucketMs) {
    const counted = byTime.get(at) ?? []
    const [starts, deliveries] = [countsByLabel(counted, 'starts'), countsByLabel(counted, 'deliveries')]
    buckets.push({ at: new Date(at).toISOString(), starts, deliveries })
  }
  const { rows } = await db.pool.query<{ currency: string | null }>(`SELECT ${CURRENCY} AS currency`)
  return { bucket, currency: rows[0]!.currency, buckets, groups }
}

/** The table of each thing, and the name of the group of what has none. */
const THINGS = {
  workflow: ['workflows', 'No workflow'],
  webhook_source: ['webhook_sources', 'No webhook source'],
  api_key: ['api_keys', 'Schedule and people'],
  lookup: ['lookups', 'No look-up'],
} as const

async function readGroups(
  db: Db,
  { organizationId, memberId }: Viewer,
  by: UsageQuery['by'],
  used: readonly UsageRow[],
): Promise<UsageOut['groups']> {
  if (memberId !== null && by !== 'workflow') return []
  if (by === 'model')
    return toGroups([...Map.groupBy(used, ({ label }) => label)].map(([name, rows]) => ({ id: null, name, rows })))
  const [table, nameOfNone] = THINGS[by]
  const byThing = Map.groupBy(used, (row) => row.thing_id)
  const { rows: things } = await db.pool.query<{ id: string; name: string }>(
    `SELECT thing.id, thing.name FROM ${table} AS thing
     WHERE thing.organization_id = $1 AND thing.id = ANY ($2::uuid[])
       AND ${by === 'workflow' ? isVisible('thing', '$3') : '$3::uuid IS NULL'}`,
    [organizationId, [...byThing.keys()], memberId],
  )
  if (byThing.has(NIL_UUID)) things.push({ id: NIL_UUID, name: nameOfNone })
  const groups = things.map(({ id, name }) => ({ id: id === NIL_UUID ? null : id, name, rows: byThing.get(id) ?? [] }))
  const found = new Set(things.map(({ id }) => id))
  const ofDeleted = used.filter((row) => !found.has(row.thing_id))
  // Members do not learn of what they could not see.
  if (memberId === null && ofDeleted.length > 0) groups.push({ id: null, name: 'Deleted', rows: ofDeleted })
  return toGroups(groups)
}

function toGroups(
  things: readonly { id: string | null; name: string; rows: readonly UsageRow[] }[],
): UsageOut['groups'] {
  const ranked = things.map((thing) => {
    const counted = thing.rows.filter(({ measure, label }) => measure !== 'run_ms' && label !== 'bytes')
    return { ...thing, total: sum(counted, 'count') }
  })
  ranked.sort((a, b) => b.total - a.total)
  const others = ranked.slice(MAX_GROUPS - 1)
  const ofOthers = { id: null, name: `${others.length} others`, rows: others.flatMap(({ rows }) => rows) }
  const shown = others.length > 1 ? [...ranked.slice(0, MAX_GROUPS - 1), ofOthers] : ranked
  return shown.map(({ id, name, rows }) => {
    const measured = (measure: Measure) => rows.filter((row) => row.measure === measure)
    const durations = measured('run_ms').toSorted((a, b) => Number(a.label) - Number(b.label))
    const answers = sum(measured('answers'), 'count')
    const { calls = 0, bytes = 0 } = countsByLabel(rows, 'lookups')
    return {
      id,
      name,
      starts: { ...countsByLabel(rows, 'starts'), ...(answers > 0 ? { answers } : {}) },
      deliveries: countsByLabel(rows, 'deliveries'),
      run_ms_p50: percentile(durations, 0.5),
      run_ms_p95: percentile(durations, 0.95),
      tokens: sum(rows, 'tokens'),
      cost_micros: sum(rows, 'cost_micros'),
      lookup_calls: calls,
      lookup_bytes: bytes,
    }
  })
}

function sum(rows: readonly UsageRow[], value: 'count' | 'tokens' | 'cost_micros'): number {
  return rows.reduce((total, row) => total + row[value], 0)
}

/** The middle of the class that has the value at this rank; null without values. */
function percentile(durations: readonly UsageRow[], share: number): number | null {
  let rank = Math.ceil(share * sum(durations, 'count'))
  for (const { label, count } of durations) {
    rank -= count
    if (rank <= 0) return Number(label)
  }
  return null
}
