import { setTimeout as pause } from 'node:timers/promises'
import { type Environment, startEnvironment } from '@workflow-service/bench/environment'
import { percentile } from '@workflow-service/bench/figure'
import { createDatabase } from '@workflow-service/database'
import { createForwardingCustomer } from '@workflow-service/soak/forwarding-customer'
import { type SoakEndpoint, startSoakEndpoint } from '@workflow-service/soak/soak-endpoint'
import { waitUntil } from '@workflow-service/testkit'
import { checkRecord } from '../../../services/runner/test/chaos/check-record.ts'
import { type Load, startLoad } from '../../../services/runner/test/chaos/load.ts'
import { createRandom } from '../../../services/runner/test/chaos/random.ts'
import { createNetwork } from './network.ts'
import { PRIMARY_SETTINGS, startStandby } from './postgres-standby.ts'
import { startRabbitMqCluster } from './rabbitmq-cluster.ts'

type Log = (line: string) => void

const CALLERS = 10
const PAUSE_MS = [200, 800] as const
const PHASE_MS = 15_000
const DRAIN_TIMEOUT_MS = 240_000
const CHANGE_TIMEOUT_MS = 120_000

/** Kills the leader of the session queue, then isolates the new one, under load. Resolves to the broken guarantees. */
export async function tryBrokerCluster(log: Log): Promise<string[]> {
  const network = await createNetwork(3)
  try {
    log('starting three nodes of RabbitMQ, each in a network namespace')
    const cluster = await startRabbitMqCluster(network)
    const environment = await startEnvironment({ rabbitMq: cluster }).catch(async (error: unknown) => {
      await cluster.stop()
      throw error
    })
    return await underLoad(environment, { databaseUrl: environment.postgres.url, env: {}, log }, async (phase) => {
      const before = await cluster.findLeader()
      log(`the leader is ${before.leader.address}, ${before.online} members are online`)
      await phase('undisturbed', async () => {})
      await phase('leader killed', async () => {
        await cluster.kill(before.leader)
        await untilLeader(async () => await cluster.findLeader(before.leader), log)
      })
      await phase('killed node restarted', async () => {
        await cluster.restart(before.leader)
        await untilOnline(cluster, log)
      })
      const home = await cluster.findDeadLetterNode()
      await phase('node of the dead-letter queue killed, every connection cut', async () => {
        await cluster.kill(home)
        await cluster.closeConnections(home)
      })
      await phase('that node restarted', async () => {
        await cluster.restart(home)
        await untilOnline(cluster, log)
      })
      const { leader } = await cluster.findLeader()
      await phase('leader cut off from the others', async () => {
        await network.isolate(leader)
        await untilLeader(async () => await cluster.findLeader(leader), log)
      })
      await phase('network healed', async () => {
        await network.heal(leader)
        await untilOnline(cluster, log)
      })
    })
  } finally {
    await network.close()
  }
}

/** Kills the primary and promotes its synchronous standby, under load. Resolves to the broken guarantees. */
export async function tryDatabaseFailover(log: Log): Promise<string[]> {
  const environment = await startEnvironment({ postgresSettings: PRIMARY_SETTINGS })
  log('starting a synchronous standby')
  const standby = await startStandby(environment.postgres).catch(async (error: unknown) => {
    await environment.close()
    throw error
  })
  try {
    const options = { databaseUrl: standby.url, env: { DATABASE_URL: standby.url }, log }
    return await underLoad(environment, options, async (phase) => {
      await phase('undisturbed', async () => {})
      await phase('primary killed, standby promoted', async () => {
        await environment.postgres.kill()
        await standby.promote()
      })
      await phase('after the failover', async () => {})
    })
  } finally {
    await standby.stop()
  }
}

/** Does something and keeps the load up for a while after it, and logs what callers noticed. */
type Phase = (name: string, act: () => Promise<void>) => Promise<void>

/** Starts two of each service and the load, runs the phases, and compares the records. Closes the environment. */
async function underLoad(
  environment: Environment,
  { databaseUrl, env, log }: { databaseUrl: string; env: Record<string, string>; log: Log },
  run: (phase: Phase) => Promise<void>,
): Promise<string[]> {
  const endpoint = await startSoakEndpoint()
  const db = createDatabase({ url: databaseUrl, applicationName: 'cluster-trial', maxConnections: 3 })
  try {
    environment.client.on('error', () => {})
    const dispatcher = await environment.startDispatcher(env)
    const gateways = [await environment.startGateway(env), await environment.startGateway(env)]
    const paths = ['/Acme/orders', '/Acme/audit'] as const
    const customer = await createForwardingCustomer(environment, dispatcher, {
      name: 'Acme',
      endpointUrl: endpoint.url,
      paths,
    })
    await environment.startRunner(dispatcher.url, env)
    await environment.startRunner(dispatcher.url, env)
    const countUnfinished = async (): Promise<number> => {
      const { rows } = await db.pool.query<{ count: number }>(
        'SELECT count(*)::int AS count FROM sessions WHERE last_finished_number < last_start_number',
      )
      return rows[0]?.count ?? 0
    }
    const load = startLoad({
      gatewayUrls: gateways.map(({ url }) => url),
      workflowId: customer.workflowId,
      apiKey: customer.apiKey,
      callers: CALLERS,
      pauseMs: PAUSE_MS,
      startsPerSession: 10,
      random: createRandom(1),
      countUnfinished,
    })
    const phases: { name: string; from: number; to: number }[] = []
    try {
      await run(async (name, act) => {
        const from = Date.now()
        await act()
        await pause(PHASE_MS)
        phases.push({ name, from, to: Date.now() })
      })
    } finally {
      await load.stop()
    }
    await waitUntil(async () => (await countUnfinished()) === 0, {
      timeoutMs: DRAIN_TIMEOUT_MS,
      intervalMs: 500,
      message: () => 'all runs to end',
    })
    for (const phase of phases) log(describePhase(phase, load, endpoint))
    const findings = await checkRecord(db, {
      organizationId: customer.organizationId,
      requested: load.requested,
      arrivals: endpoint.arrivals,
      paths,
    })
    log(
      `${findings.accepted} answered 202, ${findings.succeeded} succeeded, ${findings.outcomeUnknown} with an unknown outcome, ` +
        `${findings.payloads} payloads, ${findings.retried} runs attempted again`,
    )
    return [...load.wrongAnswers.map((answer) => `wrong answer: ${answer}`), ...findings.violations]
  } finally {
    endpoint.close()
    await db.close()
    await environment.close()
  }
}

function describePhase(
  { name, from, to }: { name: string; from: number; to: number },
  { requested }: Load,
  { arrivals }: SoakEndpoint,
): string {
  const arrivedAt = new Map<string, number>()
  for (const { text, at } of arrivals) if (!arrivedAt.has(text)) arrivedAt.set(text, at)
  const accepted = requested
    .flatMap(({ text, accepted: answer }) => (answer ? [{ text, ...answer }] : []))
    .filter(({ requestedAt }) => requestedAt >= from && requestedAt < to)
  const answers = [from, ...accepted.map(({ answeredAt }) => answeredAt).toSorted((a, b) => a - b), to]
  const gaps = answers.slice(1).map((at, index) => at - (answers[index] ?? at))
  const delays = accepted.flatMap(({ text, requestedAt }) => {
    const at = arrivedAt.get(text)
    return at === undefined ? [] : [at - requestedAt]
  })
  return (
    `${name}, ${((to - from) / 1_000).toFixed(0)} s: ${accepted.length} starts, longest time without a 202 ` +
    `${Math.max(...gaps)} ms, start → endpoint p50 ${percentile(delays, 0.5)} ms, p99 ${percentile(delays, 0.99)} ms`
  )
}

async function untilLeader(find: () => Promise<{ leader: { address: string } }>, log: Log): Promise<void> {
  const since = Date.now()
  await waitUntil(async () => (await find().catch(() => undefined)) !== undefined, {
    timeoutMs: CHANGE_TIMEOUT_MS,
    intervalMs: 100,
    message: () => 'another leader',
  })
  log(`${(await find()).leader.address} is the leader after ${Date.now() - since} ms`)
}

async function untilOnline(cluster: { findLeader(): Promise<{ online: number }> }, log: Log): Promise<void> {
  const since = Date.now()
  await waitUntil(async () => (await cluster.findLeader().catch(() => undefined))?.online === 3, {
    timeoutMs: CHANGE_TIMEOUT_MS,
    intervalMs: 200,
    message: () => 'all members of the queue to be online',
  })
  log(`all members are online after ${Date.now() - since} ms`)
}
