import { startRabbitMq } from '@workflow-service/testkit'
import { untilAllEnded } from '../shared/callers.ts'
import { apiHeadersOf, createCustomer, type Customer } from '../shared/customers.ts'
import { cpuMs } from '../shared/process-usage.ts'
import { type RemoteLoad, startRemoteReceiver } from '../shared/remote-receiver.ts'
import { readNumber, startSystem, type System, type SystemOptions } from '../shared/system.ts'
import { type BenchOptions, compare, type Figure } from './figure.ts'

export const SESSIONS_AT_ONCE = 64
const WARM_UP_RUNS = 5_000
/** Before payloads are counted, so that they arrive as evenly as starts leave. */
const LEAD_MS = 500

/** The whole path of a start: gateway, runner, dispatcher, RabbitMQ, and the customer's endpoint. */
export type ServicePath = Awaited<ReturnType<typeof startServicePath>>

export interface ServicePathOptions
  extends Pick<BenchOptions, 'profile' | 'compact'>, Pick<SystemOptions, 'openDatabase' | 'env'> {
  /** How long the endpoint takes to answer a payload. Default 0. */
  readonly endpointDelayMs?: number
  /** Default: starts one, and stops it. */
  readonly rabbitMq?: SystemOptions['rabbitMq'] & { readonly pid: number }
}

export async function startServicePath(options: ServicePathOptions) {
  const { profile, compact, openDatabase, endpointDelayMs = 0, env } = options
  const rabbitMq = options.rabbitMq ?? (await startRabbitMq())
  const system = await startSystem({ profile, openDatabase, rabbitMq, env })
  // In a process of its own, from which starts are sent, too.
  const receiver = await startRemoteReceiver(system, endpointDelayMs)
  const dispatcher = await system.start(compact ? 'compact' : 'dispatcher')
  const gateway = await system.start('gateway')
  const customer = await createCustomer(system, [''], receiver.url)
  const runner = compact ? dispatcher : await system.start('runner')
  return {
    ...system,
    gateway,
    runner,
    customer,
    receiver,
    /** The CPU time of each process of a run so far, in ms. */
    async readCpu(): Promise<Record<string, number>> {
      const cpu: Record<string, number> = {}
      for (const { name, process } of new Set([gateway, runner, dispatcher])) cpu[name] = await cpuMs(process.pid)
      cpu['PostgreSQL'] = await cpuMs(system.postgres.pid)
      cpu['RabbitMQ'] = await cpuMs(rabbitMq.pid)
      return cpu
    },
  }
}

/** Executes runs until the code of the services is compiled: the first thousands take several times as long. */
export async function warmUp(path: ServicePath, { seconds, log }: BenchOptions): Promise<void> {
  log('warming up')
  for (let runs = 0; runs < WARM_UP_RUNS;) {
    const rate = await runsPerSecond(path, seconds)
    if (rate === 0) throw new Error(`No start reached the endpoint within ${seconds} s.`)
    runs += seconds * rate
  }
}

/** Measures the runs completed per second. Resolves when all runs have ended. */
export async function runsPerSecond(path: ServicePath, seconds: number): Promise<number> {
  const rate = await payloadsPerSecond(path, path.gateway.url, seconds)
  await untilAllEnded(path)
  return rate
}

/** Starts of the customer's workflow, each in a new session and until its payload has arrived. */
export function startsOf({ apiKey, organizationId, workflowId }: Customer, origin: string): RemoteLoad {
  const headers = apiHeadersOf({ apiKey, organizationId })
  return { url: `${origin}/v1/workflows/${workflowId}/start`, headers, label: 'bench' }
}

/**
 * Keeps SESSIONS_AT_ONCE starts under way, each in a new session, and measures the payloads that reach the
 * endpoint per second.
 * @param origin The gateway that gets the starts.
 */
export async function payloadsPerSecond(
  { customer, receiver }: Pick<ServicePath, 'customer' | 'receiver'>,
  origin: string,
  seconds: number,
): Promise<number> {
  const load = { ...startsOf(customer, origin), callers: SESSIONS_AT_ONCE, seconds: LEAD_MS / 1_000 + seconds }
  const calls = await receiver.run(load)
  const from = Math.min(...calls.map(({ at }) => at)) + LEAD_MS
  const isCounted = (endedAt: number): boolean => endedAt >= from && endedAt < from + seconds * 1_000
  return calls.filter(({ at, ms }) => isCounted(at + ms)).length / seconds
}

/** Measures by how much each figure rises per run. `work` resolves to the number of runs that it has completed. */
export async function risePerRun<Name extends string>(
  read: () => Promise<Record<Name, number>>,
  work: () => Promise<number>,
): Promise<Record<Name, number>> {
  const before = await read()
  const runs = await work()
  const after = await read()
  const rises = Object.entries<number>(after).map(([name, value]) => [name, (value - before[name as Name]) / runs])
  return Object.fromEntries(rises) as Record<Name, number>
}

/** Measures the CPU time that a run takes of each process. */
export async function cpuPerRun(path: ServicePath, name: string, work: () => Promise<number>): Promise<Figure[]> {
  const spent = Object.entries(await risePerRun(() => path.readCpu(), work))
  const all = spent.reduce((sum, [, ms]) => sum + ms, 0)
  return spent.map(([process, ms]) =>
    compare(`CPU per run, ${name}, ${process}`, ms, 'ms', ['all five processes', all]),
  )
}

/** Measures what PostgreSQL writes for a run: the log in bytes, and the transactions that write. */
export async function writesPerRun(
  { pool }: ServicePath,
  name: string,
  work: () => Promise<number>,
): Promise<Figure[]> {
  const read = async () => ({
    bytes: await readNumber(pool, `SELECT (pg_current_wal_insert_lsn() - '0/0')::float8 AS value`),
    commits: await readNumber(pool, 'SELECT pg_snapshot_xmax(pg_current_snapshot())::text::float8 AS value'),
  })
  const { bytes, commits } = await risePerRun(read, work)
  return [
    compare(`write-ahead log per run, ${name}`, bytes, 'bytes', ['a page', 8_192]),
    compare(`commits per run, ${name}`, commits, '', ['start, lease, claim, outcome', 4]),
  ]
}

export async function countEnded({ pool }: Pick<System, 'pool'>): Promise<number> {
  return await readNumber(pool, `SELECT count(*)::int AS value FROM starts WHERE status IN ('succeeded', 'failed')`)
}
