import { percentile } from '@workflow-service/bench/figure'
import { type Chart, drawCharts } from './draw-charts.ts'
import type { Latency, SoakRecord } from './soak-report.ts'
import type { Sample } from './take-sample.ts'

/** Points of a line, so that the picture of many hours stays small. */
const MAX_POINTS = 240
const QUANTILES = 120

/** Draws everything that was measured over time, as SVG. `marks` are the times of incidents, in ms since the beginning. */
export function drawSoak(record: SoakRecord, marks: readonly number[]): string {
  return drawCharts(toCharts(record), { hours: (record.endedAt - record.beganAt) / 3_600_000, marks })
}

function toCharts(record: SoakRecord): Chart[] {
  const { beganAt, endedAt, samples, latencies } = record
  const step = (endedAt - beganAt) / QUANTILES
  const every = Math.ceil(samples.length / MAX_POINTS)
  const drawn = samples.filter((_, index) => index % every === 0)
  const line = (name: string, pick: (sample: Sample) => number): Chart['lines'][number] => ({
    name,
    points: drawn.map((sample) => [sample.at - beganAt, pick(sample)]),
  })
  const ofServices = (figure: 'rssMiB' | 'heapMiB' | 'openFiles'): Chart['lines'] =>
    Object.keys(samples[0]?.services ?? {}).map((name) => line(name, ({ services }) => services[name]![figure]))
  const quantile = (name: string, of: readonly Latency[], share: number): Chart['lines'][number] => {
    const pieces = Map.groupBy(of, ({ at }) => Math.floor((at - beganAt) / step))
    return {
      name,
      points: Array.from({ length: QUANTILES }, (_, index) => index).flatMap((index) => {
        const values = (pieces.get(index) ?? []).map(({ ms }) => ms)
        return values.length === 0 ? [] : [[(index + 0.5) * step, percentile(values, share)] as const]
      }),
    }
  }
  const calm = latencies.start.filter(({ isDisturbed }) => !isDisturbed)
  return [
    { title: 'Memory (RSS), MiB', lines: ofServices('rssMiB') },
    { title: 'JavaScript heap in use, MiB', lines: ofServices('heapMiB') },
    {
      title: 'Start → endpoint, ms; grey lines are incidents',
      isLogarithmic: true,
      lines: [
        quantile('p50', calm, 0.5),
        quantile('p99', calm, 0.99),
        quantile('p99 with incidents', latencies.start, 0.99),
      ],
    },
    {
      title: 'Reads and a bare commit, ms',
      isLogarithmic: true,
      lines: [
        quantile('API p50', latencies.api, 0.5),
        quantile('API p99', latencies.api, 0.99),
        quantile('application p50', latencies.app, 0.5),
        quantile('commit p50', latencies.commit, 0.5),
      ],
    },
    {
      title: 'Database, MiB',
      lines: [
        line('all', ({ databaseMiB }) => databaseMiB),
        ...['starts', 'run_steps', 'deliveries'].map((table) => line(table, ({ tables }) => tables[table]?.mib ?? 0)),
      ],
    },
    {
      title: 'Dead rows',
      lines: ['starts', 'sessions', 'deliveries', 'run_steps'].map((table) =>
        line(table, ({ tables }) => tables[table]?.dead ?? 0),
      ),
    },
    { title: 'Open files and sockets', lines: ofServices('openFiles') },
    {
      title: 'Connections, and the load of the machine',
      lines: [
        line('to PostgreSQL', ({ connections }) => connections),
        line('to RabbitMQ', ({ broker }) => broker.connections),
        line('load average', ({ load }) => load),
      ],
    },
  ]
}
