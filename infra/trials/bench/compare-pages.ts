import { median } from '../shared/figures.ts'
import { send } from '../shared/load.ts'
import { cpuMs } from '../shared/process-usage.ts'
import type { System } from '../shared/system.ts'
import { atMost, type BenchOptions, compare, type Figure, limit } from './figure.ts'

const REQUESTS = 100
/** Until the code of a page is compiled. */
const WARM_UP_REQUESTS = 20
const SMALL_TABLE = 1_000
const MAX_RATIO = 1.5

/** A page to measure. With a limit, it is not compared with that of a small table. */
export interface Page {
  readonly name: string
  readonly get: () => Promise<unknown>
  readonly limitMs?: number | undefined
}

/** Returns a function that makes pages of an origin. */
export function pagesOf(origin: string, headers: Record<string, string>) {
  return (name: string, path: string, limitMs?: number): Page => ({
    name,
    get: async () => await send(origin + path, { headers }),
    limitMs,
  })
}

/** What a part inserts and starts for one size of its tables. */
export interface Pages {
  readonly system: System
  readonly pages: readonly Page[]
}

/**
 * Measures pages in small and in larger tables: their response time, and the CPU time of services and PostgreSQL. All
 * sizes exist at the same time and alternate, so that a disturbance of the machine affects all of them.
 * @param options.sizes Those of the larger tables.
 * @param options.limitCpuMs The CPU time that each page may take.
 */
export async function comparePages(
  { rounds, log }: BenchOptions,
  { name, sizes, limitCpuMs }: { name: string; sizes: readonly number[]; limitCpuMs?: number },
  open: (size: number) => Promise<Pages>,
): Promise<Figure[]> {
  await using stack = new AsyncDisposableStack()
  const tables: (Pages & { size: number })[] = []
  for (const size of new Set([SMALL_TABLE, ...sizes])) {
    log(`${name}: inserting ${size.toLocaleString('en')} rows`)
    const opened = await open(size)
    stack.use(opened.system)
    tables.push({ ...opened, size })
  }
  const figures: Figure[] = []
  for (const [position, { name: page, limitMs }] of tables[0]!.pages.entries()) {
    log(`${name}: ${page}`)
    const costs = tables.map(({ size }) => ({ size, cpu: [] as number[], times: [] as number[] }))
    for (let round = 0; round < rounds; round += 1) {
      for (const [index, { system, pages }] of tables.entries()) {
        const cost = await measure(system, pages[position]!)
        costs[index]!.cpu.push(cost.cpuMs)
        costs[index]!.times.push(...cost.times)
      }
    }
    const [small, ...larger] = costs.map(({ size, cpu, times }) => ({ size, cpu: median(cpu), ms: median(times) }))
    for (const { size, cpu, ms } of larger) {
      const title = `${name}, ${page}, ${size.toLocaleString('en')} rows`
      // Where the CPU time has a limit, the other is only shown: it depends on what else the machine does.
      const target = limitCpuMs === undefined ? atMost(MAX_RATIO) : undefined
      if (limitMs === undefined) figures.push(compare(title, ms, 'ms', ['at 1,000', small!.ms], target))
      else figures.push(limit(title, ms, 'ms', limitMs))
      if (limitCpuMs === undefined) continue
      figures.push(compare(title, cpu, 'ms CPU', ['at 1,000', small!.cpu], atMost(MAX_RATIO)))
      figures.push(limit(title, cpu, 'ms CPU', limitCpuMs))
    }
  }
  return figures
}

async function measure({ services, postgres }: System, { get }: Page): Promise<{ cpuMs: number; times: number[] }> {
  const usedMs = async (): Promise<number> => {
    const pids = [postgres.pid, ...services.map(({ process }) => process.pid)]
    return (await Promise.all(pids.map(cpuMs))).reduce((sum, ms) => sum + ms)
  }
  for (let request = 0; request < WARM_UP_REQUESTS; request += 1) await get()
  const before = await usedMs()
  const times: number[] = []
  for (let request = 0; request < REQUESTS; request += 1) {
    const startedAt = performance.now()
    await get()
    times.push(performance.now() - startedAt)
  }
  return { cpuMs: ((await usedMs()) - before) / REQUESTS, times }
}
