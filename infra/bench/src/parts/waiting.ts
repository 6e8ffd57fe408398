import { waitUntil } from '@workflow-service/testkit'
import type { BenchOptions } from '../bench-options.ts'
import { queueStarts } from '../customer.ts'
import type { Environment } from '../environment.ts'
import { type Figure, fixedLimit, median } from '../figure.ts'
import { residentMiB } from '../process-usage.ts'
import { withServicePath } from '../service-path.ts'

const SESSIONS = 1_000
const LIMIT_MIB = 150
/** Below the dispatcher's deadline of 30 s. */
const ENDPOINT_DELAY_MS = 28_000

/** Measures the memory of a runner with 1,000 sessions that wait for a slow endpoint. */
export async function measureWaiting(options: BenchOptions): Promise<Figure[]> {
  const rounds: number[] = []
  for (let round = 0; round < options.rounds; round += 1) rounds.push(await measureRound(options))
  return [{ name: 'runner, 1,000 sessions waiting', value: median(rounds), unit: 'MiB', ...fixedLimit(LIMIT_MIB) }]
}

async function measureRound({ profile, logProgress }: BenchOptions): Promise<number> {
  const path = {
    profile,
    endpointDelayMs: ENDPOINT_DELAY_MS,
    runnerEnv: { RUNNER_CONCURRENCY: String(SESSIONS), RUNNER_ORGANIZATION_SHARE: '100' },
    dispatcherEnv: { MAX_DELIVERIES_IN_FLIGHT_PER_SOURCE: String(SESSIONS) },
  }
  return withServicePath(path, async ({ environment, runner, customer }) => {
    logProgress('1,000 sessions waiting for a slow endpoint')
    await queueStarts(environment.client, customer, SESSIONS)
    const areAllWaiting = async () => (await countInFlight(environment)) === SESSIONS
    await waitUntil(areAllWaiting, { timeoutMs: 25_000, intervalMs: 2 })
    return residentMiB(runner.process.pid)
  })
}

async function countInFlight({ client }: Environment): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM deliveries WHERE outcome = 'in_flight'`,
  )
  return rows[0]?.count ?? 0
}
