import { createBed, type Service } from '../bed.ts'
import { type Figure, median } from '../figure.ts'
import { residentMiB } from '../process-use.ts'
import type { Measuring } from '../run-context.ts'

/** What each service may take when idle, and for its boot. */
const IDLE_MIB = 110
const BOOT_MS = 1_500
/** How long the services are left alone before their memory is read. */
const IDLE_MS = 3_000

/**
 * Memory of each service when idle, and the time from the start of its process until it is ready. A start before that is
 * not counted: it leaves the compiled code for the others, as an install's first start does.
 */
export async function measureFootprint(measuring: Measuring): Promise<Figure[]> {
  const memory = new Map<string, number[]>()
  const boots = new Map<string, number[]>()
  const bareBoots: number[] = []
  for (let round = 0; round <= measuring.rounds; round += 1) {
    const bed = await createBed(measuring)
    try {
      measuring.say(round === 0 ? 'boot and memory, a start that is not counted' : `boot and memory, round ${round}`)
      const begun = performance.now()
      await bed.helper('./limit-server.ts', [])
      if (round > 0) bareBoots.push(performance.now() - begun)
      const dispatcher = await bed.dispatcher()
      const services: [string, Service][] = [
        ['dispatcher', dispatcher],
        ['gateway', await bed.gateway()],
        ['runner', await bed.runner(dispatcher.url)],
      ]
      await new Promise((resolve) => setTimeout(resolve, IDLE_MS))
      for (const [name, service] of round === 0 ? [] : services) {
        boots.set(name, [...(boots.get(name) ?? []), service.bootMs])
        memory.set(name, [...(memory.get(name) ?? []), await residentMiB(service.process.pid)])
      }
    } finally {
      await bed.close()
    }
  }
  return [
    ...[...memory].map(([name, values]) => ({
      name: `${name}, idle memory`,
      value: median(values),
      unit: 'MiB',
      ...atMost(IDLE_MIB),
    })),
    ...[...boots].flatMap(([name, values]) => {
      const boot = { name: `${name}, boot to ready`, value: median(values), unit: 'ms' }
      const bare = { name: 'Express 5 with ajv', value: median(bareBoots) }
      return [
        { ...boot, ...atMost(BOOT_MS) },
        { ...boot, limit: bare },
      ]
    }),
  ]
}

function atMost(value: number): Pick<Figure, 'limit' | 'reach'> {
  return { limit: { name: 'fixed', value }, reach: { kind: 'at most', ratio: 1 } }
}
