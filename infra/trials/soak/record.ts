import { callManagementApi } from '@workflow-service/dev-servers'
import { median, percentile, round, toTable } from '../shared/figures.ts'
import type { Service, System } from '../shared/system.ts'

/** What everything holds at one moment: figures by their names, which end in one of `ALLOWED`. */
export interface Sample {
  /** In ms since 1970. */
  readonly at: number
  readonly databaseMiB: number
  readonly figures: Readonly<Record<string, number>>
}

/** A latency in ms, and when its request was sent, in ms since 1970. */
export interface Latency {
  readonly at: number
  readonly ms: number
  /** Whether an incident was under way, or had just ended. */
  readonly isDisturbed: boolean
}

export type LatencyName = 'start' | 'api' | 'app' | 'commit'

/** Everything that a run of the soak measured. */
export interface SoakRecord {
  /** In ms since 1970. */
  readonly beganAt: number
  readonly endedAt: number
  readonly samples: readonly Sample[]
  readonly latencies: Readonly<Record<LatencyName, readonly Latency[]>>
  /** When each accepted start was requested, in ms since 1970. */
  readonly starts: readonly number[]
}

export interface Verdict {
  readonly name: string
  readonly unit: string
  /** Of the first third of the time after the warm-up, and of the last third. */
  readonly before: number
  readonly after: number
  readonly limit: number
  readonly outcome: 'kept' | 'grown' | 'not measured'
}

const HOUR_MS = 3_600_000
/**
 * What may be added to a figure between the first and the last third: the larger of a share of it and a fixed amount.
 */
const ALLOWED_SHARE = 0.1
/**
 * The amounts. The heap in use rises until a garbage collection: a low value is what remains after one. Of dead rows,
 * autovacuum starts at a fifth of the live ones, and may wait a minute.
 */
const ALLOWED: Readonly<Record<string, { unit: string; amount?: number; limit?: number; share?: number }>> = {
  memory: { unit: 'MiB', amount: 8 },
  heap: { unit: 'MiB', amount: 4, share: 0.1 },
  handles: { unit: '', amount: 5 },
  'open files': { unit: '', amount: 8 },
  'connections to PostgreSQL': { unit: '', amount: 5 },
  'connections to RabbitMQ': { unit: '', amount: 5 },
  'dead rows, worst table': { unit: '% of live', limit: 30 },
}
/** Latencies are compared as multiples of a bare commit of the same time, because the machine has other users. */
const ALLOWED_LATENCY_SHARE = 0.5
const ALLOWED_DISK_SHARE = 0.25
/** Dead rows of smaller tables do not matter. */
const MIN_ROWS = 5_000

/** Takes a sample. Rejects while PostgreSQL or RabbitMQ does not answer. */
export async function takeSample(
  { pool, rabbitMq }: System,
  services: Readonly<Record<string, Service>>,
): Promise<Sample> {
  const figures: Record<string, number> = {}
  for (const [service, { metricsUrl }] of Object.entries(services)) {
    const response = await fetch(`${metricsUrl}/metrics`, { signal: AbortSignal.timeout(5_000) })
    const metrics = await response.text()
    const value = (name: string): number =>
      Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(metrics)?.[1])
    figures[`${service}, memory`] = value('process_resident_memory_bytes') / 2 ** 20
    figures[`${service}, heap`] = value('nodejs_heap_size_used_bytes') / 2 ** 20
    figures[`${service}, handles`] = value('nodejs_active_handles_total')
    figures[`${service}, open files`] = value('process_open_fds')
  }
  const { rows } = await pool.query<{ databaseMiB: number; connections: number; deadPercent: number }>(
    `SELECT pg_database_size(current_database()) / 1048576.0::float8 AS "databaseMiB",
       (SELECT count(*)::int FROM pg_stat_activity
        WHERE datname = current_database() AND application_name NOT IN ('trial', '')) AS connections,
       (SELECT coalesce(max(100.0 * n_dead_tup / n_live_tup), 0)::float8 FROM pg_stat_user_tables
        WHERE n_live_tup >= $1) AS "deadPercent"`,
    [MIN_ROWS],
  )
  const { databaseMiB, connections, deadPercent } = rows[0]!
  const overview = await callManagementApi(rabbitMq.managementUrl, 'GET', '/api/overview')
  const { object_totals: totals } = (await overview.json()) as { object_totals: { connections: number } }
  figures['connections to PostgreSQL'] = connections
  figures['connections to RabbitMQ'] = totals.connections
  figures['dead rows, worst table'] = deadPercent
  return { at: Date.now(), databaseMiB, figures }
}

/** The first hour, or half of a run that takes less than two. */
function warmUpMs({ beganAt, endedAt }: SoakRecord): number {
  return Math.min(HOUR_MS, (endedAt - beganAt) / 2)
}

/**
 * Compares the first third of the time after the warm-up with the last third, by their medians (the heap: lowest
 * tenth). A figure that only moves up and down passes; one that grows steadily does not.
 */
export function judge(record: SoakRecord): Verdict[] {
  const from = record.beganAt + warmUpMs(record)
  const third = (record.endedAt - from) / 3
  const thirds = [from, from + 2 * third].map((begin) => pieceOf(record, begin, begin + third))
  const compare = (
    name: string,
    unit: string,
    figureOf: (piece: Piece) => number,
    limitOf: (before: number) => number,
  ): Verdict => {
    const [before = Number.NaN, after = Number.NaN] = thirds.map(figureOf)
    const limit = limitOf(before)
    const isMeasured = !Number.isNaN(after) && !Number.isNaN(limit)
    return {
      name,
      unit,
      before,
      after,
      limit,
      outcome: isMeasured ? (after <= limit ? 'kept' : 'grown') : 'not measured',
    }
  }
  const sampled = Object.keys(record.samples[0]?.figures ?? {}).map((name) => {
    const [, rule] = Object.entries(ALLOWED).find(([ending]) => name.endsWith(ending))!
    const { unit, amount = 0, limit, share = 0.5 } = rule
    return compare(
      name,
      unit,
      ({ samples }) =>
        percentile(
          samples.map(({ figures }) => figures[name]!),
          share,
        ),
      (before) => limit ?? before + Math.max(amount, ALLOWED_SHARE * before),
    )
  })
  const latency = (name: string, of: LatencyName): Verdict =>
    compare(
      `${name}, p50`,
      '× a commit',
      ({ calm }) => median(calm(of)) / median(calm('commit')),
      multiplied(ALLOWED_LATENCY_SHARE),
    )
  return [
    ...sampled,
    compare('database per start', 'KiB', kibPerStart, multiplied(ALLOWED_DISK_SHARE)),
    latency('start → endpoint', 'start'),
    latency('API read', 'api'),
    latency('application read', 'app'),
  ]
}

/** What was measured between two times. */
type Piece = ReturnType<typeof pieceOf>

function pieceOf(record: SoakRecord, from: number, to: number) {
  const isIn = ({ at }: { at: number }): boolean => at >= from && at < to
  return {
    samples: record.samples.filter(isIn),
    starts: record.starts.filter((at) => isIn({ at })).length,
    /** Without incidents. */
    calm: (name: LatencyName): number[] =>
      record.latencies[name].flatMap((call) => (isIn(call) && !call.isDisturbed ? [call.ms] : [])),
  }
}

const multiplied = (share: number) => (before: number) => before * (1 + share)

function kibPerStart({ samples, starts }: Piece): number {
  const growth = (samples.at(-1)?.databaseMiB ?? Number.NaN) - (samples[0]?.databaseMiB ?? Number.NaN)
  return (growth * 1_024) / starts
}

export function toVerdictTable(verdicts: readonly Verdict[]): string {
  return toTable(
    ['figure', 'first third', 'last third', 'limit', ''],
    verdicts.map(({ name, unit, before, after, limit, outcome }) => [
      name,
      `${round(before)} ${unit}`.trim(),
      `${round(after)} ${unit}`.trim(),
      round(limit),
      outcome,
    ]),
  )
}
