import { setTimeout as sleep } from 'node:timers/promises'
import type { BenchOptions } from '../bench-options.ts'
import { type Service, startEnvironment } from '../environment.ts'
import { type Figure, fixedLimit, median } from '../figure.ts'
import { residentMiB } from '../process-usage.ts'

const IDLE_LIMIT_MIB = 110
const BOOT_LIMIT_MS = 1_500
/** How long the services are idle before their memory is read. */
const IDLE_MS = 3_000

/**
 * Measures the memory of each idle service, and the time from the start of its process until it is ready. The first round
 * does not count: it fills Node's compile cache, as the first start after an install does.
 */
export async function measureFootprint(options: BenchOptions): Promise<Figure[]> {
  const memory = new Map<string, number[]>()
  const boots = new Map<string, number[]>()
  const expressBoots: number[] = []
  for (let round = 0; round <= options.rounds; round += 1) {
    const environment = await startEnvironment(options)
    try {
      options.logProgress(
        round === 0 ? 'boot and memory, first round (not counted)' : `boot and memory, round ${round}`,
      )
      const startedAt = performance.now()
      await environment.startScript('./baseline-server.ts')
      const expressBootMs = performance.now() - startedAt
      const dispatcher = await environment.startDispatcher()
      const services: [string, Service][] = [
        ['dispatcher', dispatcher],
        ['gateway', await environment.startGateway()],
        ['runner', await environment.startRunner(dispatcher.url)],
        ['app', await environment.startApp(dispatcher.url)],
      ]
      if (round === 0) continue
      expressBoots.push(expressBootMs)
      await sleep(IDLE_MS)
      for (const [name, service] of services) {
        boots.set(name, [...(boots.get(name) ?? []), service.bootMs])
        memory.set(name, [...(memory.get(name) ?? []), await residentMiB(service.process.pid)])
      }
    } finally {
      await environment.close()
    }
  }
  return [
    ...[...memory].map(([name, values]) => ({
      name: `${name}, idle memory`,
      value: median(values),
      unit: 'MiB',
      ...fixedLimit(IDLE_LIMIT_MIB),
    })),
    ...[...boots].flatMap(([name, values]) => {
      const boot = { name: `${name}, boot to ready`, value: median(values), unit: 'ms' }
      return [
        { ...boot, ...fixedLimit(BOOT_LIMIT_MS) },
        { ...boot, baseline: { name: 'Express 5 with ajv', value: median(expressBoots) } },
      ]
    }),
  ]
}
