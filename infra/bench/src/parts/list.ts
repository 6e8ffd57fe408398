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

/** The list's pages in a small and in a large table: CPU time of gateway and Postgres per page. */
export async function measureList(measuring: Measuring): Promise<Figure[]> {
  const small = await measureTable(measuring, 1_000)
  const large = await measureTable(measuring, measuring.largeTable)
  return [...small].flatMap(([name, value]) => {
    const figure = { name: `list, ${name}, ${measuring.largeTable.toLocaleString('en')} workflows`, unit: 'ms CPU' }
    const largeValue = large.get(name) ?? Number.NaN
    return [
      {
        ...figure,
        value: largeValue,
        limit: { name: 'fixed', value: PAGE_CPU_MS },
        reach: { kind: 'at most', ratio: 1 },
      },
      { ...figure, value: largeValue, limit: { name: 'at 1,000', value }, reach: { kind: 'at most', ratio: 1.5 } },
    ] satisfies Figure[]
  })
}

async function measureTable(measuring: Measuring, workflows: number): Promise<Map<string, number>> {
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
    const measured = new Map<string, number>()
    const get = async (path = '/v1/workflows'): Promise<void> => {
      const answer = await fetch(gateway.url + path, { headers: { authorization: `Bearer ${seeded.apiKey}` } })
      if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
      await answer.arrayBuffer()
    }
    await repeat(WARM_UP_REQUESTS, get)
    for (const [name, path] of pages) {
      measuring.say(`list: ${name}`)
      const rounds: number[] = []
      for (let round = 0; round < measuring.rounds; round += 1) rounds.push(await cpuOf(bed, gateway, () => get(path)))
      measured.set(name, median(rounds))
    }
    // A renamed user changes every document of the organization: the gateway has to read all of the page again.
    const rename = async (): Promise<void> => {
      await bed.client.query(
        `UPDATE users SET last_name = $2 WHERE id = (SELECT id FROM users WHERE organization_id = $1 LIMIT 1)`,
        [seeded.organizationId, `Last${Math.random()}`],
      )
    }
    const rounds: number[] = []
    for (let round = 0; round < measuring.rounds; round += 1)
      rounds.push((await cpuOf(bed, gateway, rename, get)) - (await cpuOf(bed, gateway, rename)))
    measured.set('first page, every document changed', median(rounds))
    return measured
  } finally {
    await bed.close()
  }
}

/** CPU time that the gateway and Postgres take for the steps, done one after another; per time, in ms. */
async function cpuOf(bed: Bed, gateway: Service, ...steps: (() => Promise<void>)[]): Promise<number> {
  const used = async (): Promise<number> =>
    (await cpuMs(gateway.process.pid)) + (await cpuMsWithChildren(bed.postgres.pid))
  await repeat(20, ...steps)
  const before = await used()
  await repeat(REQUESTS, ...steps)
  return ((await used()) - before) / REQUESTS
}

async function repeat(count: number, ...steps: (() => Promise<void>)[]): Promise<void> {
  for (let time = 0; time < count; time += 1) for (const step of steps) await step()
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
