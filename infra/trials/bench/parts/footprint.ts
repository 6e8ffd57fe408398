import { setTimeout as sleep } from 'node:timers/promises'
import { median } from '../../shared/figures.ts'
import { residentMiB } from '../../shared/process-usage.ts'
import { startSystem } from '../../shared/system.ts'
import { type BenchOptions, type Figure, limit } from '../figure.ts'

const IDLE_LIMIT_MIB = 110
const BOOT_LIMIT_MS = 1_500
/** How long the services are idle before their memory is read: longer than until they collect garbage. */
const IDLE_MS = 12_000

/**
 * Measures the memory of each idle service, and the time from the start of its process until it is ready. The first
 * round does not count: it fills Node's compile cache, as the first start after an install does.
 */
export async function measureFootprint(options: BenchOptions): Promise<Figure[]> {
  const names = options.compact
    ? (['compact', 'gateway', 'app'] as const)
    : (['dispatcher', 'gateway', 'runner', 'app'] as const)
  const measured = names.map((name) => ({ name, memory: [] as number[], boots: [] as number[] }))
  for (let round = 0; round <= options.rounds; round += 1) {
    options.log(round === 0 ? 'boot and memory, first round (not counted)' : `boot and memory, round ${round}`)
    await using system = await startSystem(options)
    for (const name of names) await system.start(name)
    if (round === 0) continue
    await sleep(IDLE_MS)
    for (const [index, { memory, boots }] of measured.entries()) {
      const { bootMs, process } = system.services[index]!
      boots.push(bootMs)
      memory.push(await residentMiB(process.pid))
    }
  }
  return measured.flatMap(({ name, memory, boots }) => [
    limit(`${name}, idle memory`, median(memory), 'MiB', IDLE_LIMIT_MIB),
    limit(`${name}, boot to ready`, median(boots), 'ms', BOOT_LIMIT_MS),
  ])
}
