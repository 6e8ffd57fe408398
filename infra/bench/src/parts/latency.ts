import { setTimeout as sleep } from 'node:timers/promises'
import type { BenchOptions } from '../bench-options.ts'
import { countFinished, start } from '../customer.ts'
import type { Arrival } from '../endpoint-server.ts'
import { type Figure, median, percentile } from '../figure.ts'
import { type MinimalPath, openMinimalPath } from '../minimal-path.ts'
import { type ServicePath, waitForRuns, warmUp, withServicePath } from '../service-path.ts'

const STARTS_PER_ROUND = 150

interface Round {
  readonly latenciesMs: number[]
  readonly baselinesMs: number[]
}

/** Measures the time from the start request until the endpoint has the payload, on an idle system. */
export async function measureLatency(options: BenchOptions): Promise<Figure[]> {
  return withServicePath(options, async (path) => {
    const { postgres, rabbitMq } = path.environment
    const minimalPath = await openMinimalPath({ database: postgres.url, amqp: rabbitMq.url, http: path.endpointUrl })
    await warmUp(path, options)
    options.logProgress('start → endpoint, idle')
    await measureRound(path, minimalPath)
    const rounds: Round[] = []
    for (let round = 0; round < options.rounds; round += 1) rounds.push(await measureRound(path, minimalPath))
    await minimalPath.close()
    const baseline = {
      name: 'HTTP + 2 commits + broker hop',
      value: median(rounds.map(({ baselinesMs }) => median(baselinesMs))),
    }
    return (
      [
        ['p50', 0.5, 3],
        ['p99', 0.99, 10],
      ] as const
    ).map(([name, share, ratio]) => ({
      name: `start → endpoint, ${name}`,
      value: median(rounds.map(({ latenciesMs }) => percentile(latenciesMs, share))),
      unit: 'ms',
      baseline,
      target: { kind: 'at most', ratio },
    }))
  })
}

/** Measures start after start, each after the baseline and after the end of the previous run. */
async function measureRound(path: ServicePath, minimalPath: MinimalPath): Promise<Round> {
  const { environment, gateway, customer, endpointUrl } = path
  const startedAt = new Map<string, number>()
  const baselinesMs: number[] = []
  await takeArrivals(endpointUrl)
  for (let number = 0; number < STARTS_PER_ROUND; number += 1) {
    baselinesMs.push(await minimalPath.measureMs())
    const text = `start ${number}`
    const before = await countFinished(environment.client)
    const arrival = fetch(`${endpointUrl}/next`)
    await sleep(5)
    startedAt.set(text, performance.timeOrigin + performance.now())
    await start(gateway, customer, text)
    // Polling before the arrival would slow down what is measured.
    await arrival
    await waitForRuns(path, { before, count: 1, intervalMs: 20, timeoutMs: 30_000 })
  }
  const latenciesMs = (await takeArrivals(endpointUrl)).flatMap(({ text, at }) => {
    const from = startedAt.get((JSON.parse(text) as { text?: string }).text ?? '')
    return from === undefined ? [] : [at - from]
  })
  if (latenciesMs.length !== STARTS_PER_ROUND)
    throw new Error(`Only ${latenciesMs.length} of ${STARTS_PER_ROUND} starts arrived.`)
  return { latenciesMs, baselinesMs }
}

async function takeArrivals(endpointUrl: string): Promise<Arrival[]> {
  return (await (await fetch(endpointUrl)).json()) as Arrival[]
}
