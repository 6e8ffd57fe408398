import { waitUntil } from '@workflow-service/testkit'
import type { BenchOptions } from '../bench-options.ts'
import { countFinished, queueStarts } from '../customer.ts'
import { type Figure, median } from '../figure.ts'
import { measureAlternately, pieceSeconds } from '../measure-alternately.ts'
import { residentMiB } from '../process-usage.ts'
import { requestsPerSecond } from '../requests-per-second.ts'
import {
  payloadsPerSecond,
  runsPerSecond,
  type ServicePath,
  SESSIONS_AT_ONCE,
  warmUp,
  withServicePath,
} from '../service-path.ts'
import { singleRowCommitsPerSecond } from '../single-row-commits.ts'

/** 1,200 runs per second on a machine where a default Express 5 application answers 27,000 GET requests per second. */
const TARGET_RUNS_PER_GET = 0.044
const QUEUED_STARTS = 10_000

/** Measures the runs completed per second: first with 64 sessions at once, then while 10,000 queued starts are drained. */
export async function measureRuns(options: BenchOptions): Promise<Figure[]> {
  return withServicePath(options, async (path) => {
    const { environment } = path
    await warmUp(path, options)
    options.logProgress('runs per second, 64 sessions at once')
    const emptyServicesUrl = await startEmptyServices(path)
    const express = await environment.startScript('./baseline-server.ts')
    const seconds = pieceSeconds(options)
    await payloadsPerSecond(path, emptyServicesUrl, seconds)
    const { value: rate, baselines } = await measureAlternately(options, () => runsPerSecond(path, seconds), {
      commits: () => singleRowCommitsPerSecond(environment.postgres.url, seconds),
      emptyServices: () => payloadsPerSecond(path, emptyServicesUrl, seconds),
      express: () => requestsPerSecond({ url: `${express.url}/get`, connections: SESSIONS_AT_ONCE, seconds }),
    })

    options.logProgress('draining 10,000 queued starts')
    const drains: Drain[] = []
    for (let round = 0; round < options.rounds; round += 1) drains.push(await drain(path))
    return [
      {
        name: 'runs completed, 64 sessions at once',
        value: rate,
        unit: '/s',
        baseline: { name: 'single-row commits', value: baselines.commits },
        target: { kind: 'at least', ratio: 0.3 },
      },
      {
        name: 'the same, against a GET',
        value: rate,
        unit: '/s',
        baseline: { name: 'Express 5', value: baselines.express },
        target: { kind: 'at least', ratio: TARGET_RUNS_PER_GET },
      },
      {
        name: 'the same, against the hops alone',
        value: rate,
        unit: '/s',
        baseline: { name: '3 empty services and RabbitMQ', value: baselines.emptyServices },
      },
      {
        name: 'the hops alone, against commits',
        value: baselines.emptyServices,
        unit: '/s',
        baseline: { name: 'single-row commits', value: baselines.commits },
      },
      {
        name: 'runs completed, draining 10,000',
        value: median(drains.map(({ perSecond }) => perSecond)),
        unit: '/s',
        baseline: { name: '64 sessions at once', value: rate },
        target: { kind: 'at least', ratio: 0.8 },
      },
      {
        name: 'runner memory at its peak, draining',
        value: median(drains.map(({ peakMiB }) => peakMiB)),
        unit: 'MiB',
        baseline: { name: 'before', value: median(drains.map(({ beforeMiB }) => beforeMiB)) },
        target: { kind: 'at most', ratio: 1.5 },
      },
    ]
  })
}

/** Starts the services of `empty-services.ts`. Resolves to the address of their gateway. */
async function startEmptyServices({ environment, endpointUrl }: ServicePath): Promise<string> {
  const start = async (role: string, targetUrl: string): Promise<string> => {
    const { url } = await environment.startScript('./empty-services.ts', [role, targetUrl, environment.rabbitMq.url])
    return url
  }
  const gatewayUrl = await start('gateway', '')
  await start('runner', await start('dispatcher', endpointUrl))
  return gatewayUrl
}

/** The runs completed per second, and the memory of the runner before and at its peak. */
interface Drain {
  readonly perSecond: number
  readonly beforeMiB: number
  readonly peakMiB: number
}

async function drain({ environment, runner, customer }: ServicePath): Promise<Drain> {
  const before = await countFinished(environment.client)
  await queueStarts(environment.client, customer, QUEUED_STARTS)
  const startedAt = performance.now()
  const beforeMiB = await residentMiB(runner.process.pid)
  let peakMiB = beforeMiB
  const isDrained = async (): Promise<boolean> => {
    peakMiB = Math.max(peakMiB, await residentMiB(runner.process.pid))
    return (await countFinished(environment.client)) - before >= QUEUED_STARTS
  }
  await waitUntil(isDrained, { timeoutMs: 180_000, intervalMs: 200 })
  return { perSecond: QUEUED_STARTS / ((performance.now() - startedAt) / 1_000), beforeMiB, peakMiB }
}
