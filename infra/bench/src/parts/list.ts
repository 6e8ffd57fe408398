import { type Bed, createBed, type Service } from '../bed.ts'
import { type Figure, median } from '../figure.ts'
import { cpuMs, cpuMsWithChildren } from '../process-use.ts'
import type { Measuring } from '../run-context.ts'
import { ABSENT_WORD, RARE_WORD, type Seeded, seedOrganization, seedWorkflows } from '../seed.ts'

/** What issue and README promise of a page of 25: CPU of gateway and Postgres together, in ms. */
const PAGE_CPU_MS = 12
const REQUESTS = 100
/** Before the first round: until the gateway's code is compiled. */
const WARM_UP_REQUESTS = 500

/** Sizes of the table between the small one and the largest. */
const SMALL_TABLE = 1_000
const MIDDLE_TABLE = 100_000

/** What a page costs, and how long its answer takes. */
interface PageCost {
  readonly cpuTimeMs: number
  readonly latencyMs: number
}

/** The list's pages in a small and in larger tables: CPU time of gateway and Postgres per page, and the answer's time. */
export async function measureList(measuring: Measuring): Promise<Figure[]> {
  const small = await measureTable(measuring, SMALL_TABLE)
  const figures: Figure[] = []
  for (const size of new Set([Math.min(MIDDLE_TABLE, measuring.largeTable), measuring.largeTable])) {
    for (const [page, { cpuTimeMs: value, latencyMs }] of await measureTable(measuring, size)) {
      const name = `list, ${page}, ${size.toLocaleString('en')} workflows`
      const limit = small.get(page) ?? { cpuTimeMs: Number.NaN, latencyMs: Number.NaN }
      const cpu = { name, value, unit: 'ms CPU' }
      figures.push(
        { ...cpu, limit: { name: 'fixed', value: PAGE_CPU_MS }, reach: { kind: 'at most', ratio: 1 } },
        { ...cpu, limit: { name: 'at 1,000', value: limit.cpuTimeMs }, reach: { kind: 'at most', ratio: 1.5 } },
        { name, value: latencyMs, unit: 'ms', limit: { name: 'at 1,000', value: limit.latencyMs } },
      )
    }
  }
  return figures
}

async function measureTable(measuring: Measuring, workflows: number): Promise<Map<string, PageCost>> {
  const bed = await createBed(measuring)
  try {
    measuring.say(`list: making ${workflows.toLocaleString('en')} workflows`)
    const seeded = await seedOrganization(bed.client)
    await seedWorkflows(bed.client, seeded, workflows, { detailed: 50 })
    const gateway = await bed.gateway()
    const pages = new Map<string, string>([
      ['first page', '/v1/workflows'],
      ['last page', await lastPagePath(gateway, seeded)],
      ['a search that matches ten', `/v1/workflows?search=${RARE_WORD}`],
      ['a search that matches none', `/v1/workflows?search=${ABSENT_WORD}`],
      ['a search of one character that matches none', '/v1/workflows?search=%C3%A7'],
    ])
    const measured = new Map<string, PageCost>()
    const get = async (path = '/v1/workflows'): Promise<void> => {
      const answer = await fetch(gateway.url + path, { headers: { authorization: `Bearer ${seeded.apiKey}` } })
      if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
      await answer.arrayBuffer()
    }
    await repeat(WARM_UP_REQUESTS, get)
    for (const [name, path] of pages) {
      measuring.say(`list: ${name}`)
      const rounds: PageCost[] = []
      for (let round = 0; round < measuring.rounds; round += 1) rounds.push(await costOf(bed, gateway, () => get(path)))
      measured.set(name, medianOf(rounds))
    }
    // A renamed user changes every document of the organization: the gateway has to read all of the page again.
    const rename = async (): Promise<void> => {
      await bed.client.query(
        `UPDATE users SET last_name = $2 WHERE id = (SELECT id FROM users WHERE organization_id = $1 LIMIT 1)`,
        [seeded.organizationId, `Last${Math.random()}`],
      )
    }
    const rounds: PageCost[] = []
    for (let round = 0; round < measuring.rounds; round += 1) {
      const both = await costOf(bed, gateway, get, rename)
      const { cpuTimeMs } = await costOf(bed, gateway, rename)
      rounds.push({ ...both, cpuTimeMs: both.cpuTimeMs - cpuTimeMs })
    }
    measured.set('first page, every document changed', medianOf(rounds))
    return measured
  } finally {
    await bed.close()
  }
}

/** What the steps cost the gateway and Postgres, done one after another, per time; the latency is the first step's. */
async function costOf(bed: Bed, gateway: Service, ...steps: (() => Promise<void>)[]): Promise<PageCost> {
  const used = async (): Promise<number> =>
    (await cpuMs(gateway.process.pid)) + (await cpuMsWithChildren(bed.postgres.pid))
  await repeat(20, ...steps)
  const before = await used()
  const latencies = await repeat(REQUESTS, ...steps)
  return { cpuTimeMs: ((await used()) - before) / REQUESTS, latencyMs: median(latencies) }
}

/** Resolves with how long the first step took each time. */
async function repeat(count: number, ...[first, ...others]: (() => Promise<void>)[]): Promise<number[]> {
  const latencies: number[] = []
  for (let time = 0; time < count; time += 1) {
    const begun = performance.now()
    await first?.()
    latencies.push(performance.now() - begun)
    for (const step of others) await step()
  }
  return latencies
}

function medianOf(rounds: readonly PageCost[]): PageCost {
  return {
    cpuTimeMs: median(rounds.map(({ cpuTimeMs }) => cpuTimeMs)),
    latencyMs: median(rounds.map(({ latencyMs }) => latencyMs)),
  }
}

/** The path of the last page, found by walking the whole list. */
async function lastPagePath(gateway: Service, seeded: Seeded): Promise<string> {
  let path = '/v1/workflows?limit=100'
  for (;;) {
    const answer = await fetch(gateway.url + path, { headers: { authorization: `Bearer ${seeded.apiKey}` } })
    const page = (await answer.json()) as { pagination: { next_cursor: string | null } }
    const { next_cursor: cursor } = page.pagination
    if (cursor === null) return path.replace('limit=100', 'limit=25')
    path = `/v1/workflows?limit=100&cursor=${encodeURIComponent(cursor)}`
  }
}
