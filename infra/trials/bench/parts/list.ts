import { apiHeadersOf, createOrganization, type Organization } from '../../shared/customers.ts'
import { median } from '../../shared/figures.ts'
import { send } from '../../shared/load.ts'
import { cpuMs, cpuMsWithChildren } from '../../shared/process-usage.ts'
import { ABSENT_WORD, RARE_WORD, seedWorkflows } from '../../shared/seed.ts'
import { type Service, startSystem, type System } from '../../shared/system.ts'
import { atMost, type BenchOptions, compare, type Figure, limit } from '../figure.ts'

/** The CPU time of gateway and PostgreSQL together that a page of 25 may take. */
const PAGE_CPU_LIMIT_MS = 12
const REQUESTS = 100
/** Until the gateway's code is compiled. */
const WARM_UP_REQUESTS = 500

/** Rows of the tables besides `largeTable`. */
const SMALL_TABLE = 1_000
const MEDIUM_TABLE = 100_000

/** The CPU time and the response time of a page. */
interface PageCost {
  readonly cpuTimeMs: number
  readonly latencyMs: number
}

/** A page to request. `before`, if any, runs before each request and does not count. */
interface Page {
  readonly name: string
  readonly get: () => Promise<void>
  readonly before?: () => Promise<void>
}

/** A list of one size, with its own database and gateway. */
interface List {
  readonly size: number
  readonly system: System
  readonly gateway: Service
  readonly pages: readonly Page[]
}

/**
 * Measures pages of the list in a small and in larger tables: CPU time of gateway and PostgreSQL, and response time.
 * All sizes exist at the same time and alternate, so that a disturbance of the machine affects all of them.
 */
export async function measureList(options: BenchOptions): Promise<Figure[]> {
  const { largeTable, rounds, log } = options
  const lists: List[] = []
  try {
    for (const size of new Set([SMALL_TABLE, Math.min(MEDIUM_TABLE, largeTable), largeTable]))
      lists.push(await createList(options, size))
    const figures: Figure[] = []
    for (const [position, { name }] of lists[0]?.pages.entries() ?? []) {
      log(`list: ${name}`)
      const costs = new Map<List, PageCost[]>(lists.map((list) => [list, []]))
      for (let round = 0; round < rounds; round += 1)
        for (const [list, measured] of costs) measured.push(await costOfPage(list, position))
      const [small, ...larger] = [...costs].map(([{ size }, measured]) => ({ size, ...medianOf(measured) }))
      for (const list of larger) if (small) figures.push(...toFigures(name, list, small))
    }
    return figures
  } finally {
    await Promise.all(lists.map(({ system }) => system.close()))
  }
}

function toFigures(page: string, large: PageCost & { size: number }, small: PageCost): Figure[] {
  const name = `list, ${page}, ${large.size.toLocaleString('en')} workflows`
  return [
    limit(name, large.cpuTimeMs, 'ms CPU', PAGE_CPU_LIMIT_MS),
    compare(name, large.cpuTimeMs, 'ms CPU', ['at 1,000', small.cpuTimeMs], atMost(1.5)),
    compare(name, large.latencyMs, 'ms', ['at 1,000', small.latencyMs]),
  ]
}

async function createList(options: BenchOptions, size: number): Promise<List> {
  options.log(`list: inserting ${size.toLocaleString('en')} workflows`)
  const system = await startSystem({ profile: options.profile, postgresSettings: { maintenance_work_mem: '1GB' } })
  try {
    const organization = await createOrganization(system)
    await seedWorkflows(system, organization, size, { detailed: 50 })
    const gateway = await system.start('gateway')
    const headers = apiHeadersOf(organization)
    const page = (name: string, path: string): Page => ({
      name,
      get: async () => void (await send(gateway.url + path, { headers })),
    })
    const first = page('first page', '/v1/workflows')
    const pages = [
      first,
      page('last page', await lastPagePath(gateway, organization)),
      page('a search that matches ten', `/v1/workflows?search=${RARE_WORD}`),
      page('a search that matches none', `/v1/workflows?search=${ABSENT_WORD}`),
      page('a search of one character that matches none', '/v1/workflows?search=%C3%A7'),
      { ...first, name: 'first page, every document changed', before: () => renameUser(system, organization) },
    ]
    await repeat(WARM_UP_REQUESTS, first.get)
    return { size, system, gateway, pages }
  } catch (error) {
    await system.close()
    throw error
  }
}

/** Changes every workflow document of the organization, so that the gateway has to read them again. */
async function renameUser({ pool }: System, { organizationId }: Organization): Promise<void> {
  await pool.query(
    `WITH renamed AS (
       UPDATE users SET last_name = $2 WHERE id = (SELECT id FROM users WHERE organization_id = $1 LIMIT 1)
     )
     UPDATE organizations SET users_version = DEFAULT WHERE id = $1`,
    [organizationId, `Last${Math.random()}`],
  )
}

async function costOfPage(list: List, position: number): Promise<PageCost> {
  const page = list.pages[position]
  if (!page) throw new Error(`There is no page ${position}.`)
  if (!page.before) return costOf(list, page.get)
  const both = await costOf(list, page.get, page.before)
  const { cpuTimeMs } = await costOf(list, page.before)
  return { ...both, cpuTimeMs: both.cpuTimeMs - cpuTimeMs }
}

/** The CPU time of all steps together and the response time of the first, per repetition. */
async function costOf({ system, gateway }: List, ...steps: (() => Promise<void>)[]): Promise<PageCost> {
  const usedCpuMs = async (): Promise<number> =>
    (await cpuMs(gateway.process.pid)) + (await cpuMsWithChildren(system.postgres.pid))
  await repeat(20, ...steps)
  const before = await usedCpuMs()
  const latencies = await repeat(REQUESTS, ...steps)
  return { cpuTimeMs: ((await usedCpuMs()) - before) / REQUESTS, latencyMs: median(latencies) }
}

/** Runs the steps one after another, again and again. Resolves to the times that the first step took, in ms. */
async function repeat(count: number, ...[first, ...others]: (() => Promise<void>)[]): Promise<number[]> {
  const latencies: number[] = []
  for (let repetition = 0; repetition < count; repetition += 1) {
    const startedAt = performance.now()
    await first?.()
    latencies.push(performance.now() - startedAt)
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

/** Finds the path of the last page by reading the whole list. */
async function lastPagePath(gateway: Service, organization: Organization): Promise<string> {
  const headers = apiHeadersOf(organization)
  let path = '/v1/workflows?limit=100'
  for (;;) {
    const page = JSON.parse(await send(gateway.url + path, { headers })) as {
      pagination: { next_cursor: string | null }
    }
    const { next_cursor: cursor } = page.pagination
    if (cursor === null) return path.replace('limit=100', 'limit=25')
    path = `/v1/workflows?limit=100&cursor=${encodeURIComponent(cursor)}`
  }
}
