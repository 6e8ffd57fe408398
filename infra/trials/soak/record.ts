import { callManagementApi } from '@workflow-service/dev-servers'
import { median, percentile, round, toTable } from '../shared/figures.ts'
import type { Service, System } from '../shared/system.ts'

/** What one service holds: memory, Node's handles, open files and sockets. */
const SERVICE_FIGURES = ['rssMiB', 'heapMiB', 'handles', 'openFiles'] as const
type ServiceSample = Readonly<Record<(typeof SERVICE_FIGURES)[number], number>>

/** What everything holds at one moment. */
export interface Sample {
  /** In ms since 1970. */
  readonly at: number
  readonly services: Readonly<Record<string, ServiceSample>>
  /** Connections of the services to PostgreSQL. */
  readonly connections: number
  readonly databaseMiB: number
  readonly tables: readonly { readonly name: string; readonly live: number; readonly dead: number }[]
  readonly brokerConnections: number
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
const ALLOWED = { rssMiB: 8, heapMiB: 4, handles: 5, openFiles: 8 }
const ALLOWED_CONNECTIONS = 5
const LABELS = { rssMiB: 'memory', heapMiB: 'heap', handles: 'handles', openFiles: 'open files' }
/** Latencies are compared as multiples of a bare commit of the same time, because the machine has other users. */
const ALLOWED_LATENCY_SHARE = 0.5
const ALLOWED_DISK_SHARE = 0.25
/** Autovacuum starts at a fifth of the live rows, and may wait a minute. */
const ALLOWED_DEAD_SHARE = 0.3
const MIN_ROWS = 5_000
/** The heap in use rises until a garbage collection: a low value is what remains after one. */
const LOW_SHARE = 0.1

/** Takes a sample. Rejects while PostgreSQL or RabbitMQ does not answer. */
export async function takeSample(
  { pool, rabbitMq }: System,
  services: Readonly<Record<string, Service>>,
): Promise<Sample> {
  const samples: Record<string, ServiceSample> = {}
  for (const [name, { metricsUrl }] of Object.entries(services)) {
    const response = await fetch(`${metricsUrl}/metrics`, { signal: AbortSignal.timeout(5_000) })
    samples[name] = toServiceSample(await response.text())
  }
  const { rows: tables } = await pool.query<Sample['tables'][number]>(
    `SELECT relname AS name, n_live_tup::int AS live, n_dead_tup::int AS dead FROM pg_stat_user_tables`,
  )
  const { rows } = await pool.query<{ databaseMiB: number; connections: number }>(
    `SELECT pg_database_size(current_database()) / 1048576.0::float8 AS "databaseMiB",
       (SELECT count(*)::int FROM pg_stat_activity
        WHERE datname = current_database() AND application_name NOT IN ('trial', '')) AS connections`,
  )
  const overview = await callManagementApi(rabbitMq.managementUrl, 'GET', '/api/overview')
  const { object_totals: totals } = (await overview.json()) as { object_totals: { connections: number } }
  return {
    at: Date.now(),
    services: samples,
    ...rows[0]!,
    tables,
    brokerConnections: totals.connections,
  }
}

function toServiceSample(metrics: string): ServiceSample {
  const value = (name: string): number => Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(metrics)?.[1])
  return {
    rssMiB: value('process_resident_memory_bytes') / 2 ** 20,
    heapMiB: value('nodejs_heap_size_used_bytes') / 2 ** 20,
    handles: value('nodejs_active_handles_total'),
    openFiles: value('process_open_fds'),
  }
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
  const ofServices = Object.keys(record.samples[0]?.services ?? {}).flatMap((service) =>
    SERVICE_FIGURES.map((figure) =>
      compare(
        `${service}, ${LABELS[figure]}`,
        figure.endsWith('MiB') ? 'MiB' : '',
        ({ values }) =>
          percentile(
            values(({ services }) => services[service]![figure]),
            figure === 'heapMiB' ? LOW_SHARE : 0.5,
          ),
        grownBy(ALLOWED[figure]),
      ),
    ),
  )
  const latency = multiplied(ALLOWED_LATENCY_SHARE)
  return [
    ...ofServices,
    compare(
      'connections to PostgreSQL',
      '',
      ({ mid }) => mid((each) => each.connections),
      grownBy(ALLOWED_CONNECTIONS),
    ),
    compare(
      'connections to RabbitMQ',
      '',
      ({ mid }) => mid((each) => each.brokerConnections),
      grownBy(ALLOWED_CONNECTIONS),
    ),
    compare(
      'dead rows, worst table',
      '% of live',
      ({ mid }) => mid(deadPercent),
      () => 100 * ALLOWED_DEAD_SHARE,
    ),
    compare('database per start', 'KiB', kibPerStart, multiplied(ALLOWED_DISK_SHARE)),
    compare('start → endpoint, p50', '× a commit', inCommits('start'), latency),
    compare('API read, p50', '× a commit', inCommits('api'), latency),
    compare('application read, p50', '× a commit', inCommits('app'), latency),
  ]
}

/** The limit of a figure that may grow by an amount, or by a tenth. */
const grownBy = (amount: number) => (before: number) => before + Math.max(amount, ALLOWED_SHARE * before)
const multiplied = (share: number) => (before: number) => before * (1 + share)
const inCommits = (name: LatencyName) => (piece: Piece) => median(piece.calm(name)) / median(piece.calm('commit'))

/** What was measured between two times. */
type Piece = ReturnType<typeof pieceOf>

function pieceOf(record: SoakRecord, from: number, to: number) {
  const isIn = ({ at }: { at: number }): boolean => at >= from && at < to
  const samples = record.samples.filter(isIn)
  const values = (pick: (sample: Sample) => number): number[] => samples.map(pick)
  return {
    samples,
    starts: record.starts.filter((at) => isIn({ at })).length,
    values,
    mid: (pick: (sample: Sample) => number): number => median(values(pick)),
    /** Without incidents. */
    calm: (name: LatencyName): number[] =>
      record.latencies[name].flatMap((call) => (isIn(call) && !call.isDisturbed ? [call.ms] : [])),
  }
}

function kibPerStart({ samples, starts }: Piece): number {
  const growth = (samples.at(-1)?.databaseMiB ?? Number.NaN) - (samples[0]?.databaseMiB ?? Number.NaN)
  return (growth * 1_024) / starts
}

/** Dead rows of the worst table that is not small. */
function deadPercent({ tables }: Sample): number {
  return Math.max(0, ...tables.flatMap(({ dead, live }) => (live >= MIN_ROWS ? (100 * dead) / live : [])))
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

/** Hours and minutes; minutes and seconds of less than an hour. */
export function formatTime(ms: number): string {
  const seconds = Math.round(ms / 1_000)
  const [high, low] = seconds >= 3_600 ? [seconds / 3_600, (seconds / 60) % 60] : [seconds / 60, seconds % 60]
  return `${Math.floor(high)}:${String(Math.floor(low)).padStart(2, '0')} ${seconds >= 3_600 ? 'h' : 'min'}`
}
