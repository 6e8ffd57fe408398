import { createBed, type Service } from '../bed.ts'
import { type Figure, median } from '../figure.ts'
import { residentMiB } from '../process-use.ts'
import type { Measuring } from '../run-context.ts'

/** What each service may take when idle, and for its boot. */
const IDLE_MIB = 110
const BOOT_MS = 1_500

/** Memory of each service when idle, and the time from the start of its process until it is ready. */
export async function measureFootprint(measuring: Measuring): Promise<Figure[]> {
  const memory = new Map<string, number[]>()
  const boots = new Map<string, number[]>()
  for (let round = 0; round < measuring.rounds; round += 1) {
    const bed = await createBed()
    try {
      measuring.say(`boot and memory, round ${round + 1}`)
      const dispatcher = await bed.dispatcher()
      const services: [string, Service][] = [
        ['dispatcher', dispatcher],
        ['gateway', await bed.gateway()],
        ['runner', await bed.runner(dispatcher.url)],
      ]
      for (const [name, service] of services) {
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
    ...[...boots].map(([name, values]) => ({
      name: `${name}, boot to ready`,
      value: median(values),
      unit: 'ms',
      ...atMost(BOOT_MS),
    })),
  ]
}

function atMost(value: number): Pick<Figure, 'limit' | 'reach'> {
  return { limit: { name: 'fixed', value }, reach: { kind: 'at most', ratio: 1 } }
}
