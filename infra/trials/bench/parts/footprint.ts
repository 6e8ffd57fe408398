import { setTimeout as sleep } from 'node:timers/promises'
import { median } from '../../shared/figures.ts'
import { residentMiB } from '../../shared/process-usage.ts'
import { type Service, withSystem } from '../../shared/system.ts'
import { type BenchOptions, compare, type Figure, limit } from '../figure.ts'

const IDLE_LIMIT_MIB = 110
const BOOT_LIMIT_MS = 1_500
/** How long the services are idle before their memory is read: longer than until they collect garbage. */
const IDLE_MS = 12_000

/**
 * Measures the memory of each idle service, and the time from the start of its process until it is ready. The first
 * round does not count: it fills Node's compile cache, as the first start after an install does.
 */
export async function measureFootprint(options: BenchOptions): Promise<Figure[]> {
  const memory = new Map<string, number[]>()
  const boots = new Map<string, number[]>()
  const expressBoots: number[] = []
  for (let round = 0; round <= options.rounds; round += 1) {
    await withSystem(options, async (system) => {
      options.log(round === 0 ? 'boot and memory, first round (not counted)' : `boot and memory, round ${round}`)
      const startedAt = performance.now()
      await system.startScript(import.meta.resolve('../baseline-server.ts'))
      const expressBootMs = performance.now() - startedAt
      const services: Service[] = []
      const names = options.compact
        ? (['compact', 'gateway', 'app'] as const)
        : (['dispatcher', 'gateway', 'runner', 'app'] as const)
      for (const name of names) services.push(await system.start(name))
      if (round === 0) return
      expressBoots.push(expressBootMs)
      await sleep(IDLE_MS)
      for (const { name, bootMs, process } of services) {
        boots.set(name, [...(boots.get(name) ?? []), bootMs])
        memory.set(name, [...(memory.get(name) ?? []), await residentMiB(process.pid)])
      }
    })
  }
  return [
    ...[...memory].map(([name, values]) => limit(`${name}, idle memory`, median(values), 'MiB', IDLE_LIMIT_MIB)),
    ...[...boots].flatMap(([name, values]) => [
      limit(`${name}, boot to ready`, median(values), 'ms', BOOT_LIMIT_MS),
      compare(`${name}, boot to ready`, median(values), 'ms', ['Express 5 with ajv', median(expressBoots)]),
    ]),
  ]
}
