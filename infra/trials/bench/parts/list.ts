import { apiHeadersOf, createOrganization } from '../../shared/customers.ts'
import { send } from '../../shared/load.ts'
import { ABSENT_WORD, RARE_WORD, seedWorkflows } from '../../shared/seed.ts'
import { type Service, startSystem, type System } from '../../shared/system.ts'
import { comparePages, type Page, pagesOf } from '../compare-pages.ts'
import type { BenchOptions, Figure } from '../figure.ts'

/** The CPU time of gateway and PostgreSQL together that a page of 25 may take. */
const PAGE_CPU_LIMIT_MS = 12
/** Until the gateway's code is compiled. */
const WARM_UP_REQUESTS = 500
const MEDIUM_TABLE = 100_000

/** Measures pages of the list of workflows in a small and in larger tables. */
export async function measureList(options: BenchOptions): Promise<Figure[]> {
  const { largeTable, profile } = options
  const sizes = [Math.min(MEDIUM_TABLE, largeTable), largeTable]
  return await comparePages(options, { name: 'list', sizes, limitCpuMs: PAGE_CPU_LIMIT_MS }, async (size) => {
    const system = await startSystem({ profile, postgresSettings: { maintenance_work_mem: '1GB' } })
    return { system, pages: await createList(system, size) }
  })
}

async function createList(system: System, size: number): Promise<Page[]> {
  const organization = await createOrganization(system)
  await seedWorkflows(system, organization, size, { detailed: 50 })
  const gateway = await system.start('gateway')
  const headers = apiHeadersOf(organization)
  const page = pagesOf(gateway.url, headers)
  const first = page('first page', '/v1/workflows')
  for (let request = 0; request < WARM_UP_REQUESTS; request += 1) await first.get()
  return [
    first,
    page('last page', await lastPagePath(gateway, headers)),
    page('a search that matches ten', `/v1/workflows?search=${RARE_WORD}`),
    page('a search that matches none', `/v1/workflows?search=${ABSENT_WORD}`),
  ]
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
