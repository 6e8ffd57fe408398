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

/** A page to ask for; `before`, if any, is done before each request and does not count. */
interface Page {
  readonly name: string
  readonly get: () => Promise<void>
  readonly before?: () => Promise<void>
}

/** A list of one size, with a database and a gateway of its own. */
interface List {
  readonly size: number
  readonly bed: Bed
  readonly gateway: Service
  readonly pages: readonly Page[]
}

/**
 * The list's pages in a small and in larger tables: CPU time of gateway and Postgres per page, and the answer's time. All
 * sizes stand side by side and take turns, so that what disturbs the machine disturbs them all.
 */
export async function measureList(measuring: Measuring): Promise<Figure[]> {
  const { largeTable, rounds, say } = measuring
  const lists: List[] = []
  try {
    for (const size of new Set([SMALL_TABLE, Math.min(MIDDLE_TABLE, largeTable), largeTable]))
      lists.push(await makeList(measuring, size))
    const figures: Figure[] = []
    for (const [position, { name }] of lists[0]?.pages.entries() ?? []) {
      say(`list: ${name}`)
      const costs = new Map<List, PageCost[]>(lists.map((list) => [list, []]))
      for (let round = 0; round < rounds; round += 1)
        for (const [list, measured] of costs) measured.push(await costOfPage(list, position))
      const [small, ...larger] = [...costs].map(([{ size }, measured]) => ({ size, ...medianOf(measured) }))
      for (const list of larger) if (small) figures.push(...toFigures(name, list, small))
    }
    return figures
  } finally {
    await Promise.all(lists.map(({ bed }) => bed.close()))
  }
}

function toFigures(page: string, large: PageCost & { size: number }, small: PageCost): Figure[] {
  const name = `list, ${page}, ${large.size.toLocaleString('en')} workflows`
  const cpu = { name, value: large.cpuTimeMs, unit: 'ms CPU' }
  return [
    { ...cpu, limit: { name: 'fixed', value: PAGE_CPU_MS }, reach: { kind: 'at most', ratio: 1 } },
    { ...cpu, limit: { name: 'at 1,000', value: small.cpuTimeMs }, reach: { kind: 'at most', ratio: 1.5 } },
    { name, value: large.latencyMs, unit: 'ms', limit: { name: 'at 1,000', value: small.latencyMs } },
  ]
}

async function makeList(measuring: Measuring, size: number): Promise<List> {
  measuring.say(`list: making ${size.toLocaleString('en')} workflows`)
  const bed = await createBed(measuring)
  try {
    const seeded = await seedOrganization(bed.client)
    await seedWorkflows(bed.client, seeded, size, { detailed: 50 })
    const gateway = await bed.gateway()
    const page = (name: string, path: string): Page => ({ name, get: () => get(gateway, seeded, path) })
    const first = page('first page', '/v1/workflows')
    const pages = [
      first,
      page('last page', await lastPagePath(gateway, seeded)),
      page('a search that matches ten', `/v1/workflows?search=${RARE_WORD}`),
      page('a search that matches none', `/v1/workflows?search=${ABSENT_WORD}`),
      page('a search of one character that matches none', '/v1/workflows?search=%C3%A7'),
      { ...first, name: 'first page, every document changed', before: () => renameUser(bed, seeded) },
    ]
    await repeat(WARM_UP_REQUESTS, first.get)
    return { size, bed, gateway, pages }
  } catch (error) {
    await bed.close()
    throw error
  }
}

async function get(gateway: Service, seeded: Seeded, path: string): Promise<void> {
  const answer = await fetch(gateway.url + path, { headers: { authorization: `Bearer ${seeded.apiKey}` } })
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  await answer.arrayBuffer()
}

/** Changes every document of the organization: the gateway has to read all of a page again. */
async function renameUser(bed: Bed, { organizationId }: Seeded): Promise<void> {
  await bed.client.query(
    `WITH renamed AS (
       UPDATE users SET last_name = $2 WHERE id = (SELECT id FROM users WHERE organization_id = $1 LIMIT 1)
     )
     UPDATE organizations SET users_version = DEFAULT WHERE id = $1`,
    [organizationId, `Last${Math.random()}`],
  )
}

async function costOfPage({ bed, gateway, pages }: List, position: number): Promise<PageCost> {
  const page = pages[position]
  if (!page) throw new Error(`There is no page ${position}.`)
  if (!page.before) return costOf(bed, gateway, page.get)
  const both = await costOf(bed, gateway, page.get, page.before)
  const { cpuTimeMs } = await costOf(bed, gateway, page.before)
  return { ...both, cpuTimeMs: both.cpuTimeMs - cpuTimeMs }
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
