// pnpm bench [PART…]: see ../README.md
import { writeFile } from 'node:fs/promises'
import { cpus, totalmem, version } from 'node:os'
import { Argument, Command, InvalidArgumentError } from 'commander'
import type { BenchOptions } from './bench-options.ts'
import { type Figure, toJson, toTable } from './figure.ts'
import { measureApp } from './parts/app.ts'
import { measureApi } from './parts/api.ts'
import { measureDeliveryLog } from './parts/delivery-log.ts'
import { measureFootprint } from './parts/footprint.ts'
import { measureLatency } from './parts/latency.ts'
import { measureList } from './parts/list.ts'
import { measureRuns } from './parts/runs.ts'
import { measureScale } from './parts/scale.ts'
import { measureTracing } from './parts/tracing.ts'
import { measureWaiting } from './parts/waiting.ts'

const PARTS: Record<string, (options: BenchOptions) => Promise<Figure[]>> = {
  api: measureApi,
  list: measureList,
  latency: measureLatency,
  runs: measureRuns,
  waiting: measureWaiting,
  log: measureDeliveryLog,
  app: measureApp,
  tracing: measureTracing,
  footprint: measureFootprint,
  scale: measureScale,
}
/** With 10,000,000 rows, `scale` takes three quarters of an hour. */
const DEFAULT_PARTS = Object.keys(PARTS).filter((name) => name !== 'scale')

type CommandOptions = Omit<BenchOptions, 'logProgress'> & { readonly json?: string }

await new Command('bench')
  .description('Measures the service on this machine, with real PostgreSQL and RabbitMQ and a process per service.')
  .addArgument(new Argument('[parts...]', 'the parts to measure; by default all but scale').choices(Object.keys(PARTS)))
  .option('--json <file>', 'also write the figures to this file')
  .option('--profile <folder>', 'write a CPU profile of each service to this folder; this lowers the figures')
  .option('--rounds <count>', 'rounds of each measurement; the figure is their median', toCount, 3)
  .option('--seconds <count>', 'length of one round under load', toCount, 5)
  .option('--large-table <rows>', 'rows of the large tables', toCount, 1_000_000)
  .option('--rows <count>', 'starts and deliveries in the part scale', toCount, 1_000_000)
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
  .action(bench)
  .parseAsync()

async function bench(parts: string[], { json, ...options }: CommandOptions): Promise<void> {
  const machine = {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memory_gib: Math.round(totalmem() / 2 ** 30),
    kernel: version(),
    node: process.version,
    pinned: 'nothing: every process runs on every core',
  }
  logProgress(`${machine.cores} × ${machine.cpu}, ${machine.memory_gib} GiB, Node ${machine.node}`)
  const figures: Figure[] = []
  for (const name of parts.length > 0 ? parts : DEFAULT_PARTS)
    figures.push(...((await PARTS[name]?.({ ...options, logProgress })) ?? []))
  process.stdout.write(`${toTable(figures)}\n`)
  if (json === undefined) return
  const { rounds, seconds } = options
  const report = { machine, options: { rounds, seconds }, figures: toJson(figures) }
  await writeFile(json, `${JSON.stringify(report, null, 2)}\n`)
}

function toCount(text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError('It must be a whole number of at least 1.')
  return Number(text)
}

function logProgress(line: string): void {
  process.stderr.write(`${line}\n`)
}
