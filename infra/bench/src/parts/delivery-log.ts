import { type Bed, createBed } from '../bed.ts'
import { makeCustomer } from '../customer.ts'
import { type Figure, median } from '../figure.ts'
import type { Measuring } from '../run-context.ts'
import { seedDeliveries } from '../seed.ts'

const REQUESTS = 200

/** A page of the delivery log in a small and in a large log: the median time of its answer. */
export async function measureDeliveryLog(measuring: Measuring): Promise<Figure[]> {
  const small = await measureLog(measuring, 1_000)
  const large = await measureLog(measuring, measuring.largeTable)
  return [...large].map(([name, value]) => ({
    name: `delivery log, ${name}, ${measuring.largeTable.toLocaleString('en')} deliveries`,
    value,
    unit: 'ms',
    limit: { name: 'at 1,000', value: small.get(name) ?? Number.NaN },
    reach: { kind: 'at most', ratio: 1.5 },
  }))
}

async function measureLog(measuring: Measuring, deliveries: number): Promise<Map<string, number>> {
  const bed = await createBed(measuring)
  try {
    measuring.say(`delivery log: making ${deliveries.toLocaleString('en')} deliveries`)
    const endpoint = await bed.helper('./endpoint-server.ts', ['0'])
    const dispatcher = await bed.dispatcher()
    const customer = await makeCustomer(bed, dispatcher, endpoint.url)
    await seedDeliveries(bed.client, customer.organizationId, customer.sourceId, deliveries)
    const log = `${dispatcher.url}/internal/organizations/${customer.organizationId}/webhook-sources/${customer.sourceId}/deliveries`
    const measured = new Map<string, number>()
    for (const [name, query] of [
      ['first page', '?limit=25'],
      ['filtered by outcome', '?limit=25&outcome=rejected'],
    ] as const) {
      const rounds: number[] = []
      for (let round = 0; round < measuring.rounds; round += 1) rounds.push(await medianMs(bed, log + query))
      measured.set(name, median(rounds))
    }
    return measured
  } finally {
    await bed.close()
  }
}

async function medianMs(bed: Bed, url: string): Promise<number> {
  const times: number[] = []
  for (let request = 0; request < REQUESTS; request += 1) {
    const begun = performance.now()
    const answer = await fetch(url, { headers: bed.internalHeaders })
    await answer.arrayBuffer()
    if (answer.status !== 200) throw new Error(`The log answered ${answer.status}.`)
    times.push(performance.now() - begun)
  }
  return median(times)
}
