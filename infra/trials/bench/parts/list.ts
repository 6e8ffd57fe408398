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

/** A page to request. `before`, if any, runs before each request and does not count. */
interface Page {
  readonly name: string
  readonly get: () => Promise<unknown>
  readonly before?: () => Promise<unknown>
}

/** A list of one size, with its own database and gateway. */
interface List {
  readonly size: number
  readonly system: System
  readonly pages: readonly Page[]
}

/**
 * Measures pages of the list in a small and in larger tables: CPU time of gateway and PostgreSQL, and response time.
 * All sizes exist at the same time and alternate, so that a disturbance of the machine affects all of them.
 */
export async function measureList(options: BenchOptions): Promise<Figure[]> {
  const { largeTable, rounds, log } = options
  await using stack = new AsyncDisposableStack()
  const lists: List[] = []
  for (const size of new Set([SMALL_TABLE, Math.min(MEDIUM_TABLE, largeTable), largeTable])) {
    log(`list: inserting ${size.toLocaleString('en')} workflows`)
    const postgresSettings = { maintenance_work_mem: '1GB' }
    const system = stack.use(await startSystem({ profile: options.profile, postgresSettings }))
    lists.push({ size, system, pages: await createList(system, size) })
  }
  const figures: Figure[] = []
  for (const [position, { name }] of lists[0]!.pages.entries()) {
    log(`list: ${name}`)
    const costs = lists.map(({ size }) => ({ size, cpu: [] as number[], latencies: [] as number[] }))
    for (let round = 0; round < rounds; round += 1)
      for (const [index, { system, pages }] of lists.entries()) {
        const page = pages[position]!
        costs[index]!.cpu.push(await costOfPage(system, page))
        costs[index]!.latencies.push(await latencyOf(page))
      }
    const [small, ...larger] = costs.map(({ size, cpu, latencies }) => [size, median(cpu), median(latencies)] as const)
    const [, smallCpuMs, smallMs] = small!
    for (const [size, pageCpuMs, ms] of larger) {
      const title = `list, ${name}, ${size.toLocaleString('en')} workflows`
      figures.push(limit(title, pageCpuMs, 'ms CPU', PAGE_CPU_LIMIT_MS))
      figures.push(compare(title, pageCpuMs, 'ms CPU', ['at 1,000', smallCpuMs], atMost(1.5)))
      figures.push(compare(title, ms, 'ms', ['at 1,000', smallMs]))
    }
  }
  return figures
}

async function createList(system: System, size: number): Promise<Page[]> {
  const organization = await createOrganization(system)
  await seedWorkflows(system, organization, size, { detailed: 50 })
  const gateway = await system.start('gateway')
  const headers = apiHeadersOf(organization)
  const page = (name: string, path: string): Page => ({
    name,
    get: async () => await send(gateway.url + path, { headers }),
  })
  const first = page('first page', '/v1/workflows')
  await repeat(WARM_UP_REQUESTS, first.get)
  return [
    first,
    page('last page', await lastPagePath(gateway, headers)),
    page('a search that matches ten', `/v1/workflows?search=${RARE_WORD}`),
    page('a search that matches none', `/v1/workflows?search=${ABSENT_WORD}`),
    page('a search of one character that matches none', '/v1/workflows?search=%C3%A7'),
    { ...first, name: 'first page, every document changed', before: () => renameUser(system, organization) },
  ]
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

async function costOfPage(system: System, { get, before }: Page): Promise<number> {
  if (!before) return await cpuMsOf(system, get)
  const both = await cpuMsOf(system, async () => {
    await before()
    await get()
  })
  return both - (await cpuMsOf(system, before))
}

/** The CPU time of gateway and PostgreSQL for a call. */
async function cpuMsOf({ services, postgres }: System, call: () => Promise<unknown>): Promise<number> {
  const usedMs = async (): Promise<number> =>
    (await cpuMs(services[0]!.process.pid)) + (await cpuMsWithChildren(postgres.pid))
  await repeat(20, call)
  const before = await usedMs()
  await repeat(REQUESTS, call)
  return ((await usedMs()) - before) / REQUESTS
}

/** The median of the page's response times, in ms. */
async function latencyOf({ get, before }: Page): Promise<number> {
  const latencies: number[] = []
  await repeat(REQUESTS, async () => {
    await before?.()
    const startedAt = performance.now()
    await get()
    latencies.push(performance.now() - startedAt)
  })
  return median(latencies)
}

async function repeat(count: number, call: () => Promise<unknown>): Promise<void> {
  for (let repetition = 0; repetition < count; repetition += 1) await call()
}

/** Finds the path of the last page by reading the whole list. */
async function lastPagePath(gateway: Service, headers: Record<string, string>): Promise<string> {
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
