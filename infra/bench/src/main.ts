// pnpm bench [NAME…] [--json FILE]: every figure beside its limit, measured in the same run on the same machine.
import { writeFile } from 'node:fs/promises'
import { cpus, totalmem, version } from 'node:os'
import { Command, InvalidArgumentError } from 'commander'
import { type Figure, isReached, ratioOf, toTable } from './figure.ts'
import { measureApi } from './parts/api.ts'
import { measureDeliveryLog } from './parts/delivery-log.ts'
import { measureFootprint } from './parts/footprint.ts'
import { measureList } from './parts/list.ts'
import { measureLatency, measureRuns, measureWaiting } from './parts/path.ts'
import type { Measuring } from './run-context.ts'

const parts: Record<string, (measuring: Measuring) => Promise<Figure[]>> = {
  api: measureApi,
  list: measureList,
  latency: measureLatency,
  runs: measureRuns,
  waiting: measureWaiting,
  log: measureDeliveryLog,
  footprint: measureFootprint,
}

interface Options {
  json?: string
  profile?: string
  rounds: number
  seconds: number
  largeTable: number
}

const command = new Command('bench')
  .description(
    'Measures the service on this machine: real Postgres and RabbitMQ, the services as processes of their own.',
  )
  .argument('[parts...]', `which parts: ${Object.keys(parts).join(', ')}; all of them by default`)
  .option('--json <file>', 'write the figures to this file, too')
  .option('--profile <folder>', 'write a CPU profile of each service there; the figures are lower then')
  .option('--rounds <count>', 'rounds of each measurement, of which the median counts', toCount, 3)
  .option('--seconds <count>', 'how long one round of a load lasts', toCount, 5)
  .option('--large-table <rows>', 'rows of the large table', toCount, 1_000_000)
  .action(bench)
await command.parseAsync()

async function bench(names: string[], options: Options): Promise<void> {
  const unknown = names.filter((name) => !(name in parts))
  if (unknown.length > 0)
    command.error(`No such part: ${unknown.join(', ')}. There are: ${Object.keys(parts).join(', ')}.`, { exitCode: 2 })
  const machine = {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memory_gib: Math.round(totalmem() / 2 ** 30),
    kernel: version(),
    node: process.version,
    pinned: 'nothing: every process runs on every core',
  }
  say(`${machine.cores} × ${machine.cpu}, ${machine.memory_gib} GiB, Node ${machine.node}; pinned: ${machine.pinned}`)
  const measuring: Measuring = { ...options, profile: options.profile, say }
  const figures: Figure[] = []
  for (const name of names.length > 0 ? names : Object.keys(parts))
    figures.push(...((await parts[name]?.(measuring)) ?? []))
  process.stdout.write(`${toTable(figures)}\n`)
  if (options.json !== undefined) {
    const measured = figures.map((figure) => ({ ...figure, ratio: ratioOf(figure), reached: isReached(figure) }))
    await writeFile(
      options.json,
      `${JSON.stringify({ machine, options: { rounds: options.rounds, seconds: options.seconds }, figures: measured }, null, 2)}\n`,
    )
  }
}

function toCount(text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError('It must be a whole number of at least 1.')
  return Number(text)
}

function say(line: string): void {
  process.stderr.write(`${line}\n`)
}
