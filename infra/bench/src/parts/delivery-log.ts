import type { BenchOptions } from '../bench-options.ts'
import { createCustomer } from '../customer.ts'
import { type Environment, startEnvironment } from '../environment.ts'
import { type Figure, median } from '../figure.ts'
import { seedDeliveries } from '../seed.ts'

const REQUESTS = 200
const SMALL_LOG = 1_000

/** Measures the response time of a page of the delivery log, in a large log and in a small one. */
export async function measureDeliveryLog(options: BenchOptions): Promise<Figure[]> {
  const small = await measureLog(options, SMALL_LOG)
  const large = await measureLog(options, options.largeTable)
  return [...large].map(([name, value]) => ({
    name: `delivery log, ${name}, ${options.largeTable.toLocaleString('en')} deliveries`,
    value,
    unit: 'ms',
    baseline: { name: 'at 1,000', value: small.get(name) ?? Number.NaN },
    target: { kind: 'at most', ratio: 1.5 },
  }))
}

/** Resolves to the response time of each page in ms. */
async function measureLog(options: BenchOptions, deliveries: number): Promise<Map<string, number>> {
  const environment = await startEnvironment(options)
  try {
    options.logProgress(`delivery log: inserting ${deliveries.toLocaleString('en')} deliveries`)
    const endpoint = await environment.startScript('./endpoint-server.ts')
    const dispatcher = await environment.startDispatcher()
    const { organizationId, sourceId } = await createCustomer(environment, dispatcher, endpoint.url)
    await seedDeliveries(environment.client, organizationId, sourceId, deliveries)
    const source = `${dispatcher.url}/internal/organizations/${organizationId}/webhook-sources/${sourceId}`
    const measured = new Map<string, number>()
    for (const [name, query] of [
      ['first page', 'limit=25'],
      ['filtered by outcome', 'limit=25&outcome=rejected'],
    ] as const) {
      const url = `${source}/deliveries?${query}`
      const rounds: number[] = []
      for (let round = 0; round < options.rounds; round += 1) rounds.push(await medianResponseMs(environment, url))
      measured.set(name, median(rounds))
    }
    return measured
  } finally {
    await environment.close()
  }
}

async function medianResponseMs({ internalHeaders }: Environment, url: string): Promise<number> {
  const times: number[] = []
  for (let request = 0; request < REQUESTS; request += 1) {
    const startedAt = performance.now()
    const response = await fetch(url, { headers: internalHeaders })
    await response.arrayBuffer()
    if (response.status !== 200) throw new Error(`The log answered ${response.status}.`)
    times.push(performance.now() - startedAt)
  }
  return median(times)
}
