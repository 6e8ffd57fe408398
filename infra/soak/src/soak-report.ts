import { median, percentile } from '@workflow-service/bench/figure'
import type { Sample } from './take-sample.ts'

/** A latency in ms, and when its request was sent, in ms since 1970. */
export interface Latency {
  readonly at: number
  readonly ms: number
  /** Whether an incident was under way, or had just ended. */
  readonly isDisturbed: boolean
}

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

export type LatencyName = 'start' | 'api' | 'app' | 'commit'

/** One rule of the verdict. */
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
/** What may be added to a figure between the first and the last third: the larger of a share of it and a fixed amount. */
const ALLOWED_SHARE = 0.1
const ALLOWED = { rssMiB: 8, heapMiB: 4, handles: 5, openFiles: 8, connections: 5 }
/** Latencies are compared as multiples of a bare commit of the same time, because the machine has other users. */
const ALLOWED_LATENCY_SHARE = 0.5
const ALLOWED_DISK_SHARE = 0.25
/** Autovacuum starts at a fifth of the live rows, and may wait a minute. */
const ALLOWED_DEAD_SHARE = 0.3
const MIN_ROWS = 5_000
/** The heap in use rises until a garbage collection: a low value is what remains after one. */
const LOW_SHARE = 0.1

/** The first hour, or half of a run that takes less than two. */
export function warmUpMs({ beganAt, endedAt }: Pick<SoakRecord, 'beganAt' | 'endedAt'>): number {
  return Math.min(HOUR_MS, (endedAt - beganAt) / 2)
}

/** Hours, or twelfths of a run that takes less than six hours. */
export function pieceMs({ beganAt, endedAt }: Pick<SoakRecord, 'beganAt' | 'endedAt'>): number {
  return endedAt - beganAt >= 6 * HOUR_MS ? HOUR_MS : (endedAt - beganAt) / 12
}

/**
 * Compares the first third of the time after the warm-up with the last third, by their medians (the heap: lowest tenth). A figure that only moves up and
 * down passes; one that grows steadily does not.
 */
export function judge(record: SoakRecord): Verdict[] {
  const from = record.beganAt + warmUpMs(record)
  const third = (record.endedAt - from) / 3
  const isBefore = ({ at }: { at: number }): boolean => at >= from && at < from + third
  const isAfter = ({ at }: { at: number }): boolean => at >= from + 2 * third
  const first = record.samples.filter(isBefore)
  const last = record.samples.filter(isAfter)
  const verdicts: Verdict[] = []
  const compare = (name: string, unit: string, [before, after]: readonly [number, number], limit: number): void => {
    const isMeasured = !Number.isNaN(after) && !Number.isNaN(limit)
    const outcome = !isMeasured ? 'not measured' : after <= limit ? 'kept' : 'grown'
    verdicts.push({ name, unit, before, after, limit, outcome })
  }
  const medians = (pick: (sample: Sample) => number): [number, number] => [
    median(first.map(pick)),
    median(last.map(pick)),
  ]
  const lows = (pick: (sample: Sample) => number): [number, number] => [
    percentile(first.map(pick), LOW_SHARE),
    percentile(last.map(pick), LOW_SHARE),
  ]

  for (const service of Object.keys(record.samples[0]?.services ?? {})) {
    for (const [figure, label, unit] of [
      ['rssMiB', 'memory', 'MiB'],
      ['heapMiB', 'heap', 'MiB'],
      ['handles', 'handles', ''],
      ['openFiles', 'open files', ''],
    ] as const) {
      const pick = ({ services }: Sample): number => services[service]![figure]
      const both = figure === 'heapMiB' ? lows(pick) : medians(pick)
      compare(`${service}, ${label}`, unit, both, grown(both[0], ALLOWED[figure]))
    }
  }
  const connections = medians((sample) => sample.connections)
  compare('connections to PostgreSQL', '', connections, grown(connections[0], ALLOWED.connections))
  const brokerConnections = medians(({ broker }) => broker.connections)
  compare('connections to RabbitMQ', '', brokerConnections, grown(brokerConnections[0], ALLOWED.connections))

  const deadShares = medians((sample) => 100 * Math.max(0, ...largeTables(sample).map(({ dead, live }) => dead / live)))
  compare('dead rows, worst table', '% of live', deadShares, 100 * ALLOWED_DEAD_SHARE)
  const perStart = [isBefore, isAfter].map((isIn) => {
    const samples = record.samples.filter(isIn)
    const growth = (samples.at(-1)?.databaseMiB ?? Number.NaN) - (samples[0]?.databaseMiB ?? Number.NaN)
    return (growth * 1_024) / record.starts.filter((at) => isIn({ at })).length
  }) as [number, number]
  compare('database per start', 'KiB', perStart, perStart[0] * (1 + ALLOWED_DISK_SHARE))

  const calm = (name: LatencyName, isIn: (latency: Latency) => boolean): number =>
    median(record.latencies[name].filter((latency) => !latency.isDisturbed && isIn(latency)).map(({ ms }) => ms))
  for (const [name, label] of [
    ['start', 'start → endpoint, p50'],
    ['api', 'API read, p50'],
    ['app', 'application read, p50'],
  ] as const) {
    const both = [isBefore, isAfter].map((isIn) => calm(name, isIn) / calm('commit', isIn)) as [number, number]
    compare(label, '× a commit', both, both[0] * (1 + ALLOWED_LATENCY_SHARE))
  }
  return verdicts
}

function grown(before: number, amount: number): number {
  return before + Math.max(amount, ALLOWED_SHARE * before)
}

function largeTables({ tables }: Sample): { dead: number; live: number }[] {
  return Object.values(tables).filter(({ live }) => live >= MIN_ROWS)
}

/** The verdict as a table. */
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

/**
 * The figures by the hour, or by a shorter piece: medians, the last size of the database, the most dead rows. Of the services in the order
 * gateway, runner, dispatcher, application; latencies without incidents, p50 and p99, in ms.
 */
export function toFigureTable(record: SoakRecord): string {
  const length = pieceMs(record)
  const rows: string[][] = []
  for (let from = record.beganAt; from < record.endedAt - length / 2; from += length) {
    rows.push(pieceRow(record, from, from + length))
  }
  return toTable(
    [
      'until',
      'starts',
      'memory, MiB',
      'heap, MiB',
      'open files',
      'start → endpoint',
      'p99 with incidents',
      'API read',
      'app read',
      'commit',
      'database',
      'dead rows',
      'connections',
      'load',
    ],
    rows,
  )
}

function pieceRow(record: SoakRecord, from: number, to: number): string[] {
  const isIn = ({ at }: { at: number }): boolean => at >= from && at < to
  const samples = record.samples.filter(isIn)
  const last = samples.at(-1)
  const mid = (pick: (sample: Sample) => number): string => round(median(samples.map(pick)))
  const ofServices = (figure: 'rssMiB' | 'heapMiB' | 'openFiles'): string =>
    Object.keys(last?.services ?? {})
      .map((service) => mid(({ services }) => services[service]![figure]))
      .join(', ')
  const values = (name: LatencyName, isCalm = true): number[] =>
    record.latencies[name].filter((latency) => isIn(latency) && !(isCalm && latency.isDisturbed)).map(({ ms }) => ms)
  const both = (name: LatencyName): string => `${round(median(values(name)))}, ${round(percentile(values(name), 0.99))}`
  const dead = Math.max(
    0,
    ...samples.flatMap((sample) => largeTables(sample).map(({ dead: rows, live }) => rows / live)),
  )
  return [
    formatTime(to - record.beganAt),
    record.starts.filter((at) => isIn({ at })).length.toLocaleString('en'),
    ofServices('rssMiB'),
    ofServices('heapMiB'),
    ofServices('openFiles'),
    both('start'),
    round(percentile(values('start', false), 0.99)),
    both('api'),
    both('app'),
    round(median(values('commit'))),
    `${round(last?.databaseMiB ?? Number.NaN)} MiB`,
    `≤ ${round(100 * dead)} %`,
    mid((sample) => sample.connections),
    mid(({ load }) => load),
  ]
}

/** Hours and minutes; minutes and seconds of less than an hour. */
export function formatTime(ms: number): string {
  const seconds = Math.round(ms / 1_000)
  const [high, low] = seconds >= 3_600 ? [seconds / 3_600, (seconds / 60) % 60] : [seconds / 60, seconds % 60]
  return `${Math.floor(high)}:${String(Math.floor(low)).padStart(2, '0')} ${seconds >= 3_600 ? 'h' : 'min'}`
}

/** A table in Markdown, which can also be read in a terminal. */
function toTable(head: string[], rows: string[][]): string {
  const widths = head.map((title, column) => Math.max(...[head, ...rows].map((row) => (row[column] ?? title).length)))
  const toLine = (cells: string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`
  return [toLine(head), toLine(widths.map((width) => '-'.repeat(width))), ...rows.map(toLine)].join('\n')
}

function round(value: number): string {
  return Number.isNaN(value) ? '–' : Number(value.toPrecision(3)).toLocaleString('en')
}
