import { setTimeout as pause } from 'node:timers/promises'
import { createDatabase } from '@workflow-service/database'
import { waitUntil } from '@workflow-service/testkit'
import {
  type Callers,
  checkCallers,
  describeFindings,
  startCallers,
  timeStarts,
  untilAllEnded,
} from '../shared/callers.ts'
import { createCustomer } from '../shared/customers.ts'
import { defineTrial, type Log, type TrialOptions } from '../shared/define-trial.ts'
import { percentile, toTable } from '../shared/figures.ts'
import type { Receiver } from '../shared/receiver.ts'
import { type ProcessName, startSystem, type System } from '../shared/system.ts'
import { createNetwork } from './network.ts'
import { PRIMARY_SETTINGS, startStandby } from './postgres-standby.ts'
import { startRabbitMqCluster } from './rabbitmq-cluster.ts'

const PARTS = { broker: tryBrokerCluster, database: tryDatabaseFailover }

export const trial = defineTrial({
  summary:
    'kills, isolates and promotes nodes of broker and database clusters under load, and counts what was lost or doubled',
  parts: Object.keys(PARTS),
  options: {},
  async run({ parts, log }) {
    const violations: string[] = []
    for (const [part, run] of Object.entries(PARTS).filter(([name]) => parts.includes(name))) {
      log(part)
      violations.push(...(await run({ log })))
    }
    return violations
  },
})

const PROCESSES = ['dispatcher', 'gateway', 'gateway', 'runner', 'runner'] as const
const CALLERS = 10
const PAUSE_MS = [200, 800] as const
const PHASE_MS = 15_000
const CHANGE_TIMEOUT_MS = 120_000

/** Kills the leader of the session queue, then isolates the new one, under load. Resolves to the broken guarantees. */
async function tryBrokerCluster({ log }: TrialOptions): Promise<readonly string[]> {
  await using stack = new AsyncDisposableStack()
  const network = stack.adopt(await createNetwork(3), (created) => created.close())
  log('starting three nodes of RabbitMQ, each in a network namespace')
  const cluster = await startRabbitMqCluster(network)
  // It stops the cluster when it is closed.
  const system = stack.use(await startSystem({ rabbitMq: cluster }))
  const areAllOnline = async () => (await cluster.findLeader()).online === network.nodes.length
  return await underLoad(system, { phaseMs: PHASE_MS, log }, async (phase) => {
    const before = await cluster.findLeader()
    log(`the leader is ${before.leader.address}, ${before.online} members are online`)
    await phase('undisturbed', async () => {})
    await phase('leader killed', async () => {
      await cluster.kill(before.leader)
      await until('another leader', () => cluster.findLeader(before.leader), log)
    })
    await phase('killed node restarted', async () => {
      await cluster.restart(before.leader)
      await until('all members of the queue online', areAllOnline, log)
    })
    const { leader } = await cluster.findLeader()
    await phase('leader cut off from the others', async () => {
      await network.isolate(leader)
      await until('another leader', () => cluster.findLeader(leader), log)
    })
    await phase('network healed', async () => {
      await network.heal(leader)
      await until('all members of the queue online', areAllOnline, log)
    })
  })
}

/** Kills the primary and promotes its synchronous standby, under load. Resolves to the broken guarantees. */
export async function tryDatabaseFailover({
  phaseMs = PHASE_MS,
  processes,
  log,
  rabbitMq,
}: TrialOptions & { phaseMs?: number; processes?: readonly ProcessName[] }): Promise<readonly string[]> {
  await using stack = new AsyncDisposableStack()
  const system = stack.use(await startSystem({ postgresSettings: PRIMARY_SETTINGS, rabbitMq }))
  log('starting a synchronous standby')
  const standby = stack.adopt(await startStandby(system.postgres), (started) => started.stop())
  const db = createDatabase({ url: standby.url, applicationName: 'trial', maxConnections: 3 })
  stack.defer(() => db.close())
  const load = { env: { DATABASE_URL: standby.url }, phaseMs, processes, log }
  return await underLoad({ ...system, pool: db.pool }, load, async (phase) => {
    await phase('undisturbed', async () => {})
    await phase('primary killed, standby promoted', async () => {
      await system.postgres.kill()
      await standby.promote()
    })
    await phase('after the failover', async () => {})
  })
}

interface LoadOptions {
  /** Of every service. */
  readonly env?: Readonly<Record<string, string>>
  readonly phaseMs: number
  /** Those that are started. Default: a dispatcher, two gateways and two runners. */
  readonly processes?: readonly ProcessName[] | undefined
  readonly log: Log
}

/** Does something and keeps the load up for a while after it. */
type Phase = (name: string, act: () => Promise<void>) => Promise<void>

/** A phase that has ended, in ms since 1970. */
interface Ended {
  readonly name: string
  readonly from: number
  readonly to: number
}

/**
 * Starts the services and the load, runs the phases, logs what callers noticed in each, and compares the records.
 */
async function underLoad(
  system: System,
  { env = {}, phaseMs, processes = PROCESSES, log }: LoadOptions,
  run: (phase: Phase) => Promise<void>,
): Promise<readonly string[]> {
  for (const name of processes) await system.start(name, { env })
  const customer = await createCustomer(system, ['/Acme/orders', '/Acme/audit'])
  const load = startCallers(system, customer, { callers: CALLERS, pauseMs: PAUSE_MS, startsPerSession: 10 })
  const phases: Ended[] = []
  try {
    await run(async (name, act) => {
      const from = Date.now()
      await act()
      await pause(phaseMs)
      phases.push({ name, from, to: Date.now() })
    })
  } finally {
    await load.stop()
  }
  await untilAllEnded(system)
  log(describePhases(phases, load, system.receiver))
  const findings = await checkCallers(system, [load])
  log(describeFindings(findings))
  return findings.violations
}

function describePhases(phases: readonly Ended[], load: Callers, receiver: Receiver): string {
  const rows = phases.map(({ name, from, to }) => {
    const isIn = (at: number): boolean => at >= from && at < to
    const accepted = load.requested.flatMap((start) =>
      start.accepted && isIn(start.accepted.requestedAt) ? start.accepted : [],
    )
    const answers = [from, ...accepted.map(({ answeredAt }) => answeredAt).toSorted((a, b) => a - b), to]
    const gaps = answers.slice(1).map((at, index) => at - (answers[index] ?? at))
    const delays = timeStarts(load, receiver).flatMap(({ at, ms }) => (isIn(at) ? ms : []))
    return [
      name,
      `${((to - from) / 1_000).toFixed(0)} s`,
      accepted.length,
      `${Math.max(...gaps)} ms`,
      `${percentile(delays, 0.5)} ms`,
      `${percentile(delays, 0.99)} ms`,
    ]
  })
  return toTable(['phase', '', 'starts', 'longest time without a 202', 'start → endpoint p50', 'p99'], rows)
}

/** Waits for a change of the cluster, and logs how long it took. */
async function until(change: string, hasHappened: () => Promise<unknown>, log: Log): Promise<void> {
  const since = Date.now()
  await waitUntil(hasHappened, { timeoutMs: CHANGE_TIMEOUT_MS, intervalMs: 100, message: change })
  log(`${change} after ${Date.now() - since} ms`)
}
