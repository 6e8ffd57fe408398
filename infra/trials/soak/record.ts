import { median, percentile, round, toTable } from '../shared/figures.ts'
import type { Incident } from '../shared/incidents.ts'
import type { Call } from '../shared/load.ts'
import { readMetric, readNumber, type Service, type System } from '../shared/system.ts'

/** What everything holds at one moment: the memory and the heap of each service, by their names. */
export interface Sample {
  /** In ms since 1970. */
  readonly at: number
  readonly databaseMiB: number
  readonly figures: Readonly<Record<string, number>>
}

type LatencyName = 'start' | 'api' | 'app' | 'commit'

/** Everything that a run of the soak measured. */
export interface SoakRecord {
  /** In ms since 1970. */
  readonly beganAt: number
  readonly endedAt: number
  readonly samples: readonly Sample[]
  readonly incidents: readonly Pick<Incident, 'beganAt' | 'endedAt'>[]
  /** Of starts, each lasts until its payload has arrived. */
  readonly calls: Readonly<Record<LatencyName, readonly Call[]>>
  /** When each accepted start was requested, in ms since 1970. */
  readonly starts: readonly number[]
}

export interface Verdict {
  readonly name: string
  readonly unit: string
  /** Of each hour, or of each third of a run that takes less than three hours. */
  readonly values: readonly number[]
  readonly hasGrown: boolean
}

const HOUR_MS = 3_600_000
/** A lease of a killed runner ends after 15 s, the sweep finds its session within 2 s; the rest is for the backlog. */
const SETTLE_MS = 25_000
/** Of a run that takes less than three hours. */
const FEWEST_PIECES = 3

/** Takes a sample. Rejects while a service or PostgreSQL does not answer. */
export async function takeSample(
  { pool }: Pick<System, 'pool'>,
  services: Readonly<Record<string, Service>>,
): Promise<Sample> {
  const figures: Record<string, number> = {}
  for (const [name, service] of Object.entries(services)) {
    figures[`${name}, memory`] = (await readMetric(service, 'process_resident_memory_bytes')) / 2 ** 20
    figures[`${name}, heap`] = (await readMetric(service, 'nodejs_heap_size_used_bytes')) / 2 ** 20
  }
  const databaseMiB = await readNumber(pool, 'SELECT pg_database_size(current_database()) / 1048576.0::float8 AS value')
  return { at: Date.now(), databaseMiB, figures }
}

/**
 * Compares the last piece with the second one: in the first, code is compiled and caches fill. Latencies are compared
 * as multiples of a bare commit of the same time, because the machine has other users.
 */
export function judge(record: SoakRecord): Verdict[] {
  const { beganAt, endedAt } = record
  const count = Math.max(FEWEST_PIECES, Math.floor((endedAt - beganAt) / HOUR_MS))
  const lengthMs = (endedAt - beganAt) / count
  const pieces = Array.from({ length: count }, (_, index) => beganAt + index * lengthMs).map((from) =>
    pieceOf(record, from, from + lengthMs),
  )
  /** What is allowed is the larger of a share and an amount. A figure that was not measured counts as grown. */
  const verdict = (
    name: string,
    unit: string,
    figureOf: (piece: Piece) => number,
    share: number,
    amount = 0,
  ): Verdict => {
    const values = pieces.map(figureOf)
    const [, before = Number.NaN] = values
    return { name, unit, values, hasGrown: !(values.at(-1)! <= before + Math.max(amount, share * before)) }
  }
  const latency = (name: string, of: LatencyName): Verdict =>
    verdict(`${name}, p50`, '× a commit', ({ calm }) => median(calm(of)) / median(calm('commit')), 0.5)
  return [
    ...Object.keys(record.samples[0]?.figures ?? {}).map((name) => {
      // The heap in use rises until a garbage collection: a low value is what remains after one.
      const [level, amountMiB] = name.endsWith('heap') ? [0.1, 4] : [0.5, 8]
      const valuesOf = ({ samples }: Piece): number[] => samples.map(({ figures }) => figures[name]!)
      return verdict(name, 'MiB', (piece) => percentile(valuesOf(piece), level), 0.1, amountMiB)
    }),
    verdict('database per start', 'KiB', kibPerStart, 0.25),
    latency('start → endpoint', 'start'),
    latency('API read', 'api'),
    latency('application read', 'app'),
  ]
}

/** What was measured between two times. */
type Piece = ReturnType<typeof pieceOf>

function pieceOf({ samples, incidents, calls, starts }: SoakRecord, from: number, to: number) {
  const isIn = ({ at }: { at: number }): boolean => at >= from && at < to
  const isCalm = ({ at }: Call): boolean =>
    incidents.every(({ beganAt, endedAt }) => at < beganAt || at >= endedAt + SETTLE_MS)
  return {
    samples: samples.filter(isIn),
    starts: starts.filter((at) => isIn({ at })).length,
    /** The latencies of calls that succeeded while no incident was under way, or had just ended. */
    calm: (name: LatencyName): number[] =>
      calls[name].flatMap((call) => (isIn(call) && call.failure === undefined && isCalm(call) ? [call.ms] : [])),
  }
}

function kibPerStart({ samples, starts }: Piece): number {
  const growth = (samples.at(-1)?.databaseMiB ?? Number.NaN) - (samples[0]?.databaseMiB ?? Number.NaN)
  return (growth * 1_024) / starts
}

/** Each piece is titled by its end. */
export function toVerdictTable(verdicts: readonly Verdict[], hours: number): string {
  const pieces = verdicts[0]?.values.map(
    (_value, index, all) => `${round((60 * hours * (index + 1)) / all.length)} min`,
  )
  return toTable(
    ['figure', '', ...(pieces ?? []), ''],
    verdicts.map(({ name, unit, values, hasGrown }) => [
      name,
      unit,
      ...values.map((value) => round(value)),
      hasGrown ? 'GROWN' : 'kept',
    ]),
  )
}
