import { setTimeout as sleep } from 'node:timers/promises'
import { waitUntil } from '@workflow-service/testkit'
import { apiHeadersOf, countUnfinished, createCustomer } from '../../shared/customers.ts'
import { median, percentile } from '../../shared/figures.ts'
import { send } from '../../shared/load.ts'
import { residentMiB } from '../../shared/process-usage.ts'
import { queueStarts } from '../../shared/seed.ts'
import { readMetric, readNumber, startSystem } from '../../shared/system.ts'
import { openMinimalPath, requestsPerSecond, singleRowCommitsPerSecond } from '../baselines.ts'
import {
  atLeast,
  atMost,
  type BenchOptions,
  compare,
  type Figure,
  limit,
  measureAlternately,
  pieceSeconds,
} from '../figure.ts'
import {
  countEnded,
  cpuPerRun,
  runsPerSecond,
  type ServicePath,
  type ServicePathOptions,
  SESSIONS_AT_ONCE,
  startsOf,
  startServicePath,
  warmUp,
  writesPerRun,
} from '../service-path.ts'

/** 1,200 runs per second on a machine where a default Express 5 application answers 27,000 GET requests per second. */
const TARGET_RUNS_PER_GET = 0.044
const QUEUED_STARTS = 10_000

/**
 * Measures the runs completed per second: first with 64 sessions at once, then while 10,000 queued starts are drained.
 */
export async function measureRuns(options: BenchOptions): Promise<Figure[]> {
  await using path = await startServicePath(options)
  await warmUp(path, options)
  options.log('runs per second, 64 sessions at once')
  const expressUrl = await path.startScript(import.meta.resolve('../baseline-server.ts'))
  const seconds = pieceSeconds(options)
  const { runs, commits, gets } = await measureAlternately(options, {
    commits: () => singleRowCommitsPerSecond(path.postgres.url, seconds),
    gets: () => requestsPerSecond({ url: `${expressUrl}/get`, connections: SESSIONS_AT_ONCE, seconds }),
    runs: () => runsPerSecond(path, seconds),
  })
  const runMany = async (): Promise<number> => {
    const before = await countEnded(path)
    await runsPerSecond(path, options.seconds)
    return (await countEnded(path)) - before
  }
  const cpu = await cpuPerRun(path, '64 sessions at once', runMany)
  const writes = await writesPerRun(path, '64 sessions at once', runMany)

  options.log('draining 10,000 queued starts')
  const drains: Awaited<ReturnType<typeof drain>>[] = []
  for (let round = 0; round < options.rounds; round += 1) drains.push(await drain(path))
  const perSecond = median(drains.map((each) => each.perSecond))
  const beforeMiB = median(drains.map((each) => each.beforeMiB))
  const peakMiB = median(drains.map((each) => each.peakMiB))
  return [
    compare('runs completed, 64 sessions at once', runs, '/s', ['single-row commits', commits], atLeast(0.3)),
    compare('the same, against a GET', runs, '/s', ['Express 5', gets], atLeast(TARGET_RUNS_PER_GET)),
    ...cpu,
    ...writes,
    compare('runs completed, draining 10,000', perSecond, '/s', ['64 sessions at once', runs], atLeast(0.8)),
    compare('runner memory at its peak, draining', peakMiB, 'MiB', ['before', beforeMiB], atMost(1.5)),
  ]
}

/** Measures the runs completed per second, and the memory of the runner before and at its peak. */
async function drain(path: ServicePath) {
  const { runner, customer } = path
  const before = await countEnded(path)
  await queueStarts(path, customer, QUEUED_STARTS)
  const startedAt = performance.now()
  const beforeMiB = await residentMiB(runner.process.pid)
  let peakMiB = beforeMiB
  const isDrained = async (): Promise<boolean> => {
    peakMiB = Math.max(peakMiB, await residentMiB(runner.process.pid))
    return (await countEnded(path)) - before >= QUEUED_STARTS
  }
  await waitUntil(isDrained, { timeoutMs: 180_000, intervalMs: 200 })
  return { perSecond: QUEUED_STARTS / ((performance.now() - startedAt) / 1_000), beforeMiB, peakMiB }
}

const STARTS_PER_ROUND = 150

/** Measures the time from the start request until the endpoint has the payload, on an idle system. */
export async function measureLatency(
  options: BenchOptions,
  { startsPerRound = STARTS_PER_ROUND, warmsUp = true, ...pathOptions }: LatencyOptions = {},
): Promise<Figure[]> {
  await using path = await startServicePath({ ...options, ...pathOptions })
  const { postgres, rabbitMq, receiver } = path
  const minimalPath = await openMinimalPath({ database: postgres.url, amqp: rabbitMq.url, http: receiver.url })
  if (warmsUp) await warmUp(path, options)
  options.log('start → endpoint, idle')
  const rounds: { latencies: number[]; minima: number[] }[] = []
  const measureRound = async (): Promise<void> => {
    const round = { latencies: [] as number[], minima: [] as number[] }
    for (let number = 0; number < startsPerRound; number += 1) {
      round.minima.push(await minimalPath.measureMs())
      round.latencies.push(await measureStart(path))
    }
    rounds.push(round)
  }
  await measureRound()
  rounds.pop()
  const cpu = await cpuPerRun(path, 'idle', async () => {
    for (let round = 0; round < options.rounds; round += 1) await measureRound()
    return options.rounds * startsPerRound
  })
  await minimalPath.close()
  const writes = await writesPerRun(path, 'one at a time', async () => {
    for (let number = 0; number < startsPerRound; number += 1) await measureStart(path)
    return startsPerRound
  })
  const minimalMs = median(rounds.map(({ minima }) => median(minima)))
  const toFigure = (name: string, share: number, ratio: number): Figure => {
    const ms = median(rounds.map(({ latencies }) => percentile(latencies, share)))
    return compare(`start → endpoint, ${name}`, ms, 'ms', ['HTTP + 2 commits + broker hop', minimalMs], atMost(ratio))
  }
  return [toFigure('p50', 0.5, 3), toFigure('p99', 0.99, 10), ...cpu, ...writes]
}

/** How a test makes the part small. */
interface LatencyOptions extends Pick<ServicePathOptions, 'rabbitMq' | 'openDatabase'> {
  readonly startsPerRound?: number
  readonly warmsUp?: boolean
}

/** Measures one start, and waits for the end of its run. */
async function measureStart(path: ServicePath): Promise<number> {
  const { gateway, customer, receiver } = path
  // What came before has settled.
  await sleep(5)
  // Polling before the arrival would slow down what is measured.
  const [call] = await receiver.run({ ...startsOf(customer, gateway.url), count: 1 })
  await waitUntil(async () => (await countUnfinished(path.pool)) === 0, { timeoutMs: 30_000, intervalMs: 20 })
  return call?.ms ?? Number.NaN
}

const WAITING_SESSIONS = 1_000
const WAITING_LIMIT_MIB = 150
/** Below the dispatcher's deadline of 30 s. */
const ENDPOINT_DELAY_MS = 28_000

/** Measures what waits: sessions in a runner for a slow endpoint, and requests in a gateway for the end of a run. */
export async function measureWaiting(options: BenchOptions): Promise<Figure[]> {
  const rounds: number[] = []
  const pathOptions = {
    ...options,
    endpointDelayMs: ENDPOINT_DELAY_MS,
    env: {
      RUNNER_CONCURRENCY: String(WAITING_SESSIONS),
      RUNNER_ORGANIZATION_SHARE: '100',
      MAX_DELIVERIES_IN_FLIGHT_PER_SOURCE: String(WAITING_SESSIONS),
    },
  }
  for (let round = 0; round < options.rounds; round += 1) {
    await using path = await startServicePath(pathOptions)
    options.log('1,000 sessions waiting for a slow endpoint')
    await queueStarts(path, path.customer, WAITING_SESSIONS)
    const query = `SELECT count(*)::int AS value FROM deliveries WHERE outcome = 'in_flight'`
    const areAllWaiting = async () => (await readNumber(path.pool, query)) === WAITING_SESSIONS
    await waitUntil(areAllWaiting, { timeoutMs: 25_000, intervalMs: 2 })
    rounds.push(await residentMiB(path.runner.process.pid))
  }
  const sessions = limit('runner, 1,000 sessions waiting', median(rounds), 'MiB', WAITING_LIMIT_MIB)
  return [sessions, ...(await measureWaitingRequests(options))]
}

const WAITING_REQUESTS = 5_000
/** Requests at once, fewer than the gateway has slots. */
const GROUP = 250
const STATEMENTS_LIMIT = 50

/** Far less than the 30 s that a request waits. */
const WAITING_SECONDS = 5

/** Measures memory and statements of requests that wait for the end of a run, and counts those that miss it. */
async function measureWaitingRequests({ log }: BenchOptions): Promise<Figure[]> {
  await using system = await startSystem()
  await system.start('dispatcher')
  const gateway = await system.start('gateway', { openFiles: 20_000 })
  const customer = await createCustomer(system)
  await queueStarts(system, customer, GROUP)
  const { rows } = await system.pool.query<{ id: string }>('SELECT id FROM starts')
  log('5,000 requests waiting for the end of a run')
  const beforeMiB = await residentMiB(gateway.process.pid)
  const responses: Promise<string>[] = []
  const areAllWaiting = async () => (await readMetric(gateway, 'gateway_run_waits')) === responses.length
  while (responses.length < WAITING_REQUESTS) {
    for (const { id } of rows)
      responses.push(
        send(`${gateway.url}/v1/runs/${id}?wait=30`, { headers: apiHeadersOf(customer), timeoutMs: 60_000 }).catch(
          String,
        ),
      )
    await waitUntil(areAllWaiting, { timeoutMs: 20_000, message: 'all requests to wait' })
  }
  const query = 'SELECT xact_commit::float8 AS value FROM pg_stat_database WHERE datname = current_database()'
  const before = await readNumber(system.pool, query)
  await sleep(WAITING_SECONDS * 1_000)
  const statements = ((await readNumber(system.pool, query)) - before) / WAITING_SECONDS
  const mib = (await residentMiB(gateway.process.pid)) - beforeMiB
  await system.pool.query(`UPDATE starts SET status = 'succeeded', finished_at = now()`)
  const missed = (await Promise.all(responses)).filter((text) => !text.includes('"status":"succeeded"'))
  return [
    limit('gateway, 5,000 requests waiting', mib, 'MiB', WAITING_LIMIT_MIB),
    limit('statements of all of them', statements, '/s', STATEMENTS_LIMIT),
    limit('those that missed the end of their run', missed.length, '', 0),
  ]
}
