import { setTimeout as pause } from 'node:timers/promises'
import type { StartedProcess } from '@workflow-service/testkit'
import { createBed, type Bed, type Service } from '../bed.ts'
import type { RunLoad } from '../endpoint-server.ts'
import { countFinished, type Customer, makeCustomer, queueStarts, start } from '../customer.ts'
import { type Figure, median, percentile } from '../figure.ts'
import { commitsPerSecond, createFloor, type Floor } from '../limits.ts'
import { requestsPerSecond } from '../load.ts'
import { residentMiB } from '../process-use.ts'
import { inTurn, type Measuring, pieceSeconds } from '../run-context.ts'

const SESSIONS_AT_ONCE = 64
const WARM_UP_RUNS = 5_000
const IDLE_STARTS = 150
/** 1,200 runs a second were aimed at where a default Express 5 answers 27,000 GETs (design 9): elsewhere, as many for each GET. */
const AIMED_RUNS_PER_GET = 0.044
const QUEUED_STARTS = 10_000
const WAITING_SESSIONS = 1_000

/** The whole path as separate processes over RabbitMQ, and an endpoint that answers after `endpointDelayMs`. */
interface Path {
  readonly bed: Bed
  readonly gateway: Service
  readonly runner: Service
  readonly dispatcher: Service
  readonly endpoint: StartedProcess
  readonly endpointUrl: string
  readonly customer: Customer
}

async function withPath<Result>(
  options: {
    endpointDelayMs: number
    runnerEnv?: Record<string, string>
    dispatcherEnv?: Record<string, string>
    postgresSettings?: Record<string, string>
    profile?: string | undefined
  },
  measure: (path: Path) => Promise<Result>,
): Promise<Result> {
  const bed = await createBed(options)
  try {
    const endpoint = await bed.helper('./endpoint-server.ts', [String(options.endpointDelayMs)])
    const dispatcher = await bed.dispatcher(options.dispatcherEnv)
    const gateway = await bed.gateway()
    const customer = await makeCustomer(bed, dispatcher, endpoint.url)
    const runner = await bed.runner(dispatcher.url, options.runnerEnv)
    return await measure({
      bed,
      gateway,
      runner,
      dispatcher,
      endpoint: endpoint.process,
      endpointUrl: endpoint.url,
      customer,
    })
  } finally {
    await bed.close()
  }
}

/** From the start of the request to the gateway until the endpoint has the payload, one start at a time. */
export async function measureLatency(measuring: Measuring): Promise<Figure[]> {
  return withPath({ ...measuring, endpointDelayMs: 0 }, async (path) => {
    measuring.say('start → endpoint, idle')
    const floor = await createFloor(path.bed.postgres.url, path.bed.rabbitMq.url, path.endpointUrl)
    await warmUp(path, measuring)
    await latenciesOf(path, floor)
    const rounds: { floors: number[]; latencies: number[] }[] = []
    for (let round = 0; round < measuring.rounds; round += 1) rounds.push(await latenciesOf(path, floor))
    await floor.close()
    const limit = {
      name: 'HTTP + 2 commits + broker hop',
      value: median(rounds.map(({ floors }) => median(floors))),
    }
    return (
      [
        ['p50', 0.5, 3],
        ['p99', 0.99, 10],
      ] as const
    ).map(([name, share, ratio]) => ({
      name: `start → endpoint, ${name}`,
      value: median(rounds.map(({ latencies }) => percentile(latencies, share))),
      unit: 'ms',
      limit,
      reach: { kind: 'at most', ratio },
    }))
  })
}

/** A round: as many starts as make a percentile, each after the floor was measured and the one before has ended. */
async function latenciesOf({ bed, gateway, customer, endpointUrl }: Path, floor: Floor) {
  const begun = new Map<string, number>()
  const floors: number[] = []
  await takeArrivals(endpointUrl)
  for (let number = 0; number < IDLE_STARTS; number += 1) {
    floors.push(await floor.measure())
    const context = `start ${number}`
    const finished = await countFinished(bed.client)
    const arrival = fetch(`${endpointUrl}/next`)
    await pause(5)
    begun.set(context, performance.timeOrigin + performance.now())
    await start(gateway, customer, context)
    // No look while what is measured is under way: it would take time from it.
    await arrival
    await until(async () => (await countFinished(bed.client)) > finished, 30_000, 20)
  }
  const latencies = (await takeArrivals(endpointUrl)).flatMap(({ text, at }) => {
    const from = begun.get((JSON.parse(text) as { text?: string }).text ?? '')
    return from === undefined ? [] : [at - from]
  })
  if (latencies.length !== IDLE_STARTS) throw new Error(`Only ${latencies.length} of ${IDLE_STARTS} starts arrived.`)
  return { floors, latencies }
}

/** Runs completed per second: 64 sessions at once, started one after another through the API; then 10,000 queued. */
export async function measureRuns(measuring: Measuring): Promise<Figure[]> {
  return withPath({ ...measuring, endpointDelayMs: 0 }, async (path) => {
    const { bed } = path
    await warmUp(path, measuring)
    measuring.say('runs per second, 64 sessions at once')
    const bareUrl = await startBarePath(path)
    const limitServer = await bed.helper('./limit-server.ts', [])
    const seconds = pieceSeconds(measuring)
    await keepStarting(path, bareUrl, seconds)
    const { value: rate, limits } = await inTurn(measuring, () => runsPerSecond(path, seconds), {
      commits: () => commitsPerSecond(bed.postgres.url, seconds),
      bare: () => keepStarting(path, bareUrl, seconds),
      express: () => requestsPerSecond({ url: `${limitServer.url}/get`, connections: SESSIONS_AT_ONCE, seconds }),
    })

    measuring.say('draining 10,000 queued starts')
    const drains: Drain[] = []
    for (let round = 0; round < measuring.rounds; round += 1) drains.push(await drain(path))
    return [
      {
        name: 'runs completed, 64 sessions at once',
        value: rate,
        unit: '/s',
        limit: { name: 'single-row commits', value: limits.commits },
        reach: { kind: 'at least', ratio: 0.3 },
      },
      {
        name: 'the same, against a GET',
        value: rate,
        unit: '/s',
        limit: { name: 'Express 5', value: limits.express },
        reach: { kind: 'at least', ratio: AIMED_RUNS_PER_GET },
      },
      {
        name: 'the same, against the hops alone',
        value: rate,
        unit: '/s',
        limit: { name: '3 empty services and RabbitMQ', value: limits.bare },
      },
      {
        name: 'the hops alone, against commits',
        value: limits.bare,
        unit: '/s',
        limit: { name: 'single-row commits', value: limits.commits },
      },
      {
        name: 'runs completed, draining 10,000',
        value: median(drains.map(({ perSecond }) => perSecond)),
        unit: '/s',
        limit: { name: '64 sessions at once', value: rate },
        reach: { kind: 'at least', ratio: 0.8 },
      },
      {
        name: 'runner memory at its peak, draining',
        value: median(drains.map(({ peakMiB }) => peakMiB)),
        unit: 'MiB',
        limit: { name: 'before', value: median(drains.map(({ beforeMiB }) => beforeMiB)) },
        reach: { kind: 'at most', ratio: 1.5 },
      },
    ]
  })
}

/** Runs completed per second while a queue was emptied, and the runner's memory before and at its peak. */
interface Drain {
  readonly perSecond: number
  readonly beforeMiB: number
  readonly peakMiB: number
}

async function drain({ bed, runner, customer }: Path): Promise<Drain> {
  const before = await countFinished(bed.client)
  await queueStarts(bed.client, customer, QUEUED_STARTS)
  const begun = performance.now()
  const beforeMiB = await residentMiB(runner.process.pid)
  let peakMiB = beforeMiB
  await until(
    async () => {
      peakMiB = Math.max(peakMiB, await residentMiB(runner.process.pid))
      return (await countFinished(bed.client)) - before >= QUEUED_STARTS
    },
    180_000,
    200,
  )
  return { perSecond: QUEUED_STARTS / ((performance.now() - begun) / 1_000), beforeMiB, peakMiB }
}

/** A runner with 1,000 sessions that wait on an endpoint of 30 s. */
export async function measureWaiting(measuring: Measuring): Promise<Figure[]> {
  const rounds: number[] = []
  for (let round = 0; round < measuring.rounds; round += 1) rounds.push(await waitingMiB(measuring))
  return [
    {
      name: 'runner, 1,000 sessions waiting',
      value: median(rounds),
      unit: 'MiB',
      limit: { name: 'fixed', value: 150 },
      reach: { kind: 'at most', ratio: 1 },
    },
  ]
}

async function waitingMiB(measuring: Measuring): Promise<number> {
  const runnerEnv = { RUNNER_CONCURRENCY: String(WAITING_SESSIONS), RUNNER_ORGANIZATION_SHARE: '100' }
  const dispatcherEnv = { MAX_DELIVERIES_IN_FLIGHT_PER_SOURCE: String(WAITING_SESSIONS) }
  return withPath(
    { ...measuring, endpointDelayMs: 28_000, runnerEnv, dispatcherEnv },
    async ({ bed, runner, customer }) => {
      measuring.say('1,000 sessions waiting on a slow endpoint')
      await queueStarts(bed.client, customer, WAITING_SESSIONS)
      await until(async () => (await countInFlight(bed)) === WAITING_SESSIONS, 25_000)
      return residentMiB(runner.process.pid)
    },
  )
}

/**
 * Rounds that do not count, until the services' code is compiled: a process that has just begun takes several times as long
 * for each run as one that has done some thousands.
 */
async function warmUp(path: Path, { seconds, say }: Measuring): Promise<void> {
  say('warming up')
  for (let runs = 0; runs < WARM_UP_RUNS;) {
    const rate = await runsPerSecond(path, seconds)
    if (rate === 0) throw new Error(`No start reached the endpoint within ${seconds} s.`)
    runs += seconds * rate
  }
}

/** Starts completed per second; resolves when all of them are. */
async function runsPerSecond(path: Path, seconds: number): Promise<number> {
  const rate = await keepStarting(path, path.gateway.url, seconds)
  await until(async () => (await countUnfinished(path.bed)) === 0, 120_000, 100)
  return rate
}

/** The hops of a run with nothing in them (`bare-server.ts`); resolves with where its starts go. */
async function startBarePath({ bed, endpointUrl }: Path): Promise<string> {
  const role = async (name: string, target: string) =>
    (await bed.helper('./bare-server.ts', [name, target, bed.rabbitMq.url])).url
  const gatewayUrl = await role('gateway', '')
  await role('runner', await role('dispatcher', endpointUrl))
  return gatewayUrl
}

/** Keeps 64 starts, each in a session of its own, on their way to the endpoint, and counts those that reach it. */
async function keepStarting({ customer, endpointUrl }: Path, origin: string, seconds: number): Promise<number> {
  const load: RunLoad = {
    origin,
    path: `/v1/workflows/${customer.workflowId}/start`,
    headers: { authorization: `Bearer ${customer.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ context: 'text: a start of the benchmark' }),
    sessions: SESSIONS_AT_ONCE,
    seconds,
  }
  const answer = await fetch(endpointUrl, { method: 'PUT', body: JSON.stringify(load) })
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`The load failed: ${text}`)
  return (JSON.parse(text) as { arrived: number }).arrived / seconds
}

async function countInFlight(bed: Bed): Promise<number> {
  const { rows } = await bed.client.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM deliveries WHERE outcome = 'in_flight'`,
  )
  return rows[0]?.count ?? 0
}

async function countUnfinished(bed: Bed): Promise<number> {
  const { rows } = await bed.client.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM sessions WHERE last_finished_number < last_start_number`,
  )
  return rows[0]?.count ?? 0
}

async function takeArrivals(endpointUrl: string): Promise<{ text: string; at: number }[]> {
  const answer = await fetch(endpointUrl)
  return ((await answer.json()) as { arrivals: { text: string; at: number }[] }).arrivals
}

async function until(condition: () => Promise<boolean>, timeoutMs = 30_000, intervalMs = 2): Promise<void> {
  const end = performance.now() + timeoutMs
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`Not done within ${timeoutMs / 1_000} s.`)
    await new Promise((resolve) => setTimeout(resolve, intervalMs))
  }
}
