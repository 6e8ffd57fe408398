import { writeFile } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'
import { defineTrial } from '../shared/define-trial.ts'
import { type BenchOptions, type Figure, toFigureTable, toJson } from './figure.ts'
import { measureApi } from './parts/api.ts'
import { measureApp, measureDeliveryLog } from './parts/app.ts'
import { measureFootprint } from './parts/footprint.ts'
import { measureList } from './parts/list.ts'
import { measureLatency, measureRuns, measureWaiting } from './parts/runs.ts'
import { measureScale } from './parts/scale.ts'

const PARTS: Record<string, (options: BenchOptions) => Promise<Figure[]>> = {
  api: measureApi,
  list: measureList,
  latency: (options) => measureLatency(options),
  runs: measureRuns,
  waiting: measureWaiting,
  log: measureDeliveryLog,
  app: measureApp,
  footprint: measureFootprint,
  scale: measureScale,
}
export const trial = defineTrial({
  summary: 'measures the service on this machine; all parts but scale by default',
  parts: Object.keys(PARTS),
  defaultParts: Object.keys(PARTS).filter((part) => part !== 'scale'),
  options: {
    json: ['also write the figures to this file', ''],
    compact: ['runner and dispatcher in one process, in the parts that measure runs and memory', false],
    profile: ['write a CPU profile of each service to this folder; this lowers the figures', ''],
    rounds: ['rounds of each measurement; the figure is their median', 3],
    seconds: ['length of one round under load', 5],
    'large-table': ['rows of the large tables', 1_000_000],
    rows: ['starts and deliveries in the part scale, 2.5 GB of disk for each million', 1_000_000],
  },
  async run({ options: { json, 'large-table': largeTable, ...options }, parts, log }) {
    const machine = {
      cpu: cpus()[0]?.model ?? 'unknown',
      cores: cpus().length,
      memory_gib: Math.round(totalmem() / 2 ** 30),
      node: process.version,
    }
    log(`${machine.cores} × ${machine.cpu}, ${machine.memory_gib} GiB, Node ${machine.node}`)
    const figures: Figure[] = []
    for (const part of parts) figures.push(...((await PARTS[part]?.({ ...options, largeTable, log })) ?? []))
    process.stdout.write(`${toFigureTable(figures)}\n`)
    if (json !== '') {
      const { rounds, seconds } = options
      const report = { machine, options: { rounds, seconds }, figures: toJson(figures) }
      await writeFile(json, `${JSON.stringify(report, null, 2)}\n`)
    }
    return []
  },
})
