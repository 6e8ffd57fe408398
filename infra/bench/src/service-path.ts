import { waitUntil } from '@workflow-service/testkit'
import type { BenchOptions } from './bench-options.ts'
import { countFinished, createCustomer, type Customer } from './customer.ts'
import type { RunLoad } from './endpoint-server.ts'
import { type Environment, type Service, startEnvironment } from './environment.ts'

export const SESSIONS_AT_ONCE = 64
const WARM_UP_RUNS = 5_000

/** The whole path of a start: gateway, runner, dispatcher, RabbitMQ, and the customer's endpoint. */
export interface ServicePath {
  readonly environment: Environment
  readonly dispatcher: Service
  readonly gateway: Service
  readonly runner: Service
  readonly customer: Customer
  readonly endpointUrl: string
}

export interface ServicePathOptions extends Pick<BenchOptions, 'profile'> {
  /** How long the endpoint takes to answer a payload. Default 0. */
  readonly endpointDelayMs?: number
  readonly runnerEnv?: Record<string, string>
  readonly dispatcherEnv?: Record<string, string>
}

/** Starts the path, measures on it, and stops it. */
export async function withServicePath<Result>(
  { profile, endpointDelayMs = 0, runnerEnv, dispatcherEnv }: ServicePathOptions,
  measure: (path: ServicePath) => Promise<Result>,
): Promise<Result> {
  const environment = await startEnvironment({ profile })
  try {
    const endpoint = await environment.startScript('./endpoint-server.ts', [String(endpointDelayMs)])
    const dispatcher = await environment.startDispatcher(dispatcherEnv)
    const gateway = await environment.startGateway()
    const customer = await createCustomer(environment, dispatcher, endpoint.url)
    const runner = await environment.startRunner(dispatcher.url, runnerEnv)
    return await measure({ environment, dispatcher, gateway, runner, customer, endpointUrl: endpoint.url })
  } finally {
    await environment.close()
  }
}

/** Executes runs until the code of the services is compiled: the first thousands take several times as long. */
export async function warmUp(path: ServicePath, { seconds, logProgress }: BenchOptions): Promise<void> {
  logProgress('warming up')
  for (let runs = 0; runs < WARM_UP_RUNS;) {
    const rate = await runsPerSecond(path, seconds)
    if (rate === 0) throw new Error(`No start reached the endpoint within ${seconds} s.`)
    runs += seconds * rate
  }
}

/** Measures the runs completed per second. Resolves when all runs have ended. */
export async function runsPerSecond(path: ServicePath, seconds: number): Promise<number> {
  const rate = await payloadsPerSecond(path, path.gateway.url, seconds)
  await waitUntil(async () => (await countUnfinished(path.environment)) === 0, { timeoutMs: 120_000, intervalMs: 100 })
  return rate
}

/**
 * Keeps SESSIONS_AT_ONCE starts under way, each in a new session, and measures the payloads that reach the
 * endpoint per second.
 * @param origin The gateway that gets the starts.
 */
export async function payloadsPerSecond(
  { customer, endpointUrl }: ServicePath,
  origin: string,
  seconds: number,
): Promise<number> {
  const load: RunLoad = {
    origin,
    path: `/v1/workflows/${customer.workflowId}/start`,
    headers: { authorization: `Bearer ${customer.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ context: 'text: a start of the benchmark' }),
    sessions: SESSIONS_AT_ONCE,
    seconds,
  }
  const response = await fetch(`${endpointUrl}/load`, { method: 'PUT', body: JSON.stringify(load) })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`The load failed: ${text}`)
  return (JSON.parse(text) as { arrived: number }).arrived / seconds
}

/** Waits until a number of runs has ended since the count was `before`. */
export async function waitForRuns(
  { environment }: ServicePath,
  { before, count, intervalMs, timeoutMs }: { before: number; count: number; intervalMs: number; timeoutMs: number },
): Promise<void> {
  const isDone = async () => (await countFinished(environment.client)) - before >= count
  await waitUntil(isDone, { timeoutMs, intervalMs })
}

async function countUnfinished({ client }: Environment): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM sessions WHERE last_finished_number < last_start_number`,
  )
  return rows[0]?.count ?? 0
}
