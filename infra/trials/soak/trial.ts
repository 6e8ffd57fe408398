import { randomInt } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createSignedInUser, type PrivateRabbitMq, startRabbitMq } from '@workflow-service/testkit'
import { checkCallers, describeFindings, startCallers, timeStarts, untilAllEnded } from '../shared/callers.ts'
import { apiHeadersOf, createCustomer } from '../shared/customers.ts'
import { defineTrial, type TrialOptions } from '../shared/define-trial.ts'
import { causeIncidents, closeBrokerConnections, type Incident, type Part } from '../shared/incidents.ts'
import { send, startLoad } from '../shared/load.ts'
import { createRandom } from '../shared/random.ts'
import { type Service, startSystem, type System } from '../shared/system.ts'
import { judge, type Sample, type SoakRecord, takeSample, toVerdictTable } from './record.ts'

export const trial = defineTrial({
  summary:
    'runs the service for hours under mixed load and incidents, and shows whether memory, latency or tables grow',
  options: {
    hours: ['length of the load in hours; starting and the last runs come on top', 8],
    rate: ['starts per second of all customers', 12],
    'incident-seconds': ['mean time between two incidents', 90],
    seed: ['the same seed gives the same incidents', randomInt(2 ** 31)],
    output: ['the folder for soak.md (the verdict) and soak.json (every figure)', '.local/soak'],
  },
  run: async ({ options: { 'incident-seconds': incidentSeconds, ...options }, log }) => {
    const { violations, verdicts } = await runSoak({ ...options, incidentSeconds, log })
    return [...violations, ...verdicts.flatMap(({ name, hasGrown }) => (hasGrown ? `${name} has grown` : []))]
  },
})

export interface SoakOptions extends TrialOptions {
  readonly hours: number
  /** Starts per second. */
  readonly rate: number
  /** Mean seconds between two incidents. */
  readonly incidentSeconds: number
  /** The same seed gives the same incidents. Default: a random one. */
  readonly seed?: number
  /** The folder for the tables and the figures. */
  readonly output: string
}

/** Customers, each with the last part of its second endpoint's path and its share of all starts. */
const PLANS = [
  { name: 'Acme', second: 'audit', share: 0.45 },
  { name: 'Globex', second: 'audit', share: 0.35 },
  { name: 'Initech', second: 'slow', share: 0.1 },
  { name: 'Umbrella', second: 'broken', share: 0.1 },
] as const

const DRAIN_TIMEOUT_MS = 900_000
const SAMPLES = 720
/** RabbitMQ 3.10 may lose a quorum queue when it is killed within minutes of the queue's declaration. */
const BROKER_WARM_UP_MS = 240_000
/** Callers that request one start per second together. */
const CALLERS_PER_RATE = 2
const STARTS_PER_SESSION = 20
const API_READ_INTERVAL_MS = 500
const APP_READ_INTERVAL_MS = 2_000
const COMMIT_INTERVAL_MS = 1_000

/** A customer with its callers, and the headers of a person who is signed in to the application. */
type SoakCustomer = Awaited<ReturnType<typeof startCustomer>>

/** Services that no incident ends: what they hold after hours, they have collected in hours. */
type Steady = Readonly<Record<'gateway' | 'runner' | 'dispatcher' | 'app', Service>>

/**
 * Runs the load with incidents for the given time, waits until all runs have ended, checks every guarantee, and writes
 * `soak.md` and `soak.json`. Resolves to the broken guarantees, and to a verdict on each figure.
 */
export async function runSoak(options: SoakOptions) {
  const { hours, rate, incidentSeconds, seed = randomInt(2 ** 31), output, log } = options
  await mkdir(output, { recursive: true })
  log(`seed ${seed}`)
  const rabbitMq = options.rabbitMq ?? (await startRabbitMq())
  await using system = await startSystem({ rabbitMq, openDatabase: options.openDatabase })
  const { steady, parts } = await startServices(system, rabbitMq)
  const beganAt = Date.now()
  const untilMs = performance.now() + hours * 3_600_000
  const customers: SoakCustomer[] = []
  for (const [index, plan] of PLANS.entries()) customers.push(await startCustomer(system, plan, rate, seed + index))
  const reads = await startReads(system, steady, customers)
  const samples: Sample[] = [await takeSample(system, steady)]
  const sampling = startLoad({
    spacingMs: Math.max(1_000, (hours * 3_600_000) / SAMPLES),
    // It is a failed call while PostgreSQL is down.
    call: async () => samples.push(await takeSample(system, steady)),
  })
  const random = createRandom(seed)
  const incidents: Incident[] = []
  const cause = async (hit: readonly Part[], endMs: number): Promise<void> =>
    await causeIncidents({
      parts: hit,
      random,
      untilMs: endMs,
      calmMs: [500 * incidentSeconds, 1_500 * incidentSeconds],
      log: (line) => log(`${((Date.now() - beganAt) / 60_000).toFixed(1)} min  ${line}`),
      incidents,
    })
  const withoutBroker = parts.filter((part) => part.name !== 'rabbitmq')
  await cause(withoutBroker, Math.min(untilMs, performance.now() + BROKER_WARM_UP_MS))
  await cause(parts, untilMs)
  await pause(Math.max(0, untilMs - performance.now()))
  const endedAt = Date.now()
  const loads = [sampling, ...customers.map(({ callers }) => callers), ...Object.values(reads)]
  await Promise.all(loads.map((load) => load.stop()))
  log(`${incidents.length} incidents; waiting for all runs to end`)
  await untilAllEnded(system, DRAIN_TIMEOUT_MS)

  // Starts of customers with slow or broken endpoints wait for earlier starts of their session, so they are not timed.
  const timed = customers.filter(({ plan }) => plan.second === 'audit')
  const [api, app, commit] = [reads.api.calls, reads.app.calls, reads.commit.calls]
  const calls = { start: timed.flatMap(({ callers }) => timeStarts(callers, system.receiver)), api, app, commit }
  const requested = customers.flatMap(({ callers }) => callers.requested)
  const starts = requested.flatMap(({ accepted }) => accepted?.requestedAt ?? [])
  const record: SoakRecord = { beganAt, endedAt, samples, incidents, calls, starts }
  await writeFile(join(output, 'soak.json'), JSON.stringify({ hours, rate, seed, record }))
  const violations: string[] = []
  for (const { plan, callers } of customers) {
    const findings = await checkCallers(system, [callers], (error) => mayFail(plan, error))
    log(`${plan.name}: ${describeFindings(findings)}`)
    violations.push(...findings.violations)
  }
  const verdicts = judge(record)
  const report = [
    `${hours} h, ${rate} starts/s, ${incidents.length} incidents, seed ${seed}`,
    toVerdictTable(verdicts, hours),
    `${violations.length} broken guarantees\n`,
  ].join('\n\n')
  log(report)
  await writeFile(join(output, 'soak.md'), report)
  return { violations, verdicts, record }
}

/**
 * Starts two gateways, dispatchers and runners, and an application: incidents hit the second of each, figures are of
 * the first.
 */
async function startServices(system: System, rabbitMq: PrivateRabbitMq): Promise<{ steady: Steady; parts: Part[] }> {
  const [dispatcher, secondDispatcher] = [await system.start('dispatcher'), await system.start('dispatcher')]
  const [gateway, secondGateway] = [await system.start('gateway'), await system.start('gateway')]
  const steady: Steady = { gateway, runner: await system.start('runner'), dispatcher, app: await system.start('app') }
  const secondRunner = await system.start('runner', { env: { DISPATCHER_URL: secondDispatcher.url } })
  const nothing = { kill: async () => {}, restart: async () => {}, pause: () => {}, resume: () => {} }
  const parts: Part[] = [
    secondGateway,
    secondDispatcher,
    secondRunner,
    // An orderly restart, which breaks every connection: a crash would also reset the counters that autovacuum uses.
    { ...nothing, name: 'postgres', restart: async () => await system.postgres.restart() },
    { ...nothing, name: 'rabbitmq', kill: rabbitMq.kill, restart: rabbitMq.restart },
    {
      ...nothing,
      name: 'every connection to the broker',
      kill: async () => await closeBrokerConnections(rabbitMq.managementUrl),
    },
  ]
  return { steady, parts }
}

async function startCustomer(system: System, plan: (typeof PLANS)[number], rate: number, seed: number) {
  const { name, second, share } = plan
  const customer = await createCustomer(system, [`/${name}/orders`, `/${name}/${second}`])
  const { headers } = await createSignedInUser(system.pool, customer.organizationId)
  const count = Math.max(1, Math.round(rate * share * CALLERS_PER_RATE))
  const meanPauseMs = (1_000 * count) / (rate * share)
  const callers = startCallers(system, customer, {
    name: `${name} `,
    callers: count,
    pauseMs: [0.5 * meanPauseMs, 1.5 * meanPauseMs],
    startsPerSession: STARTS_PER_SESSION,
    seed,
  })
  return { plan, customer, headers, callers }
}

/** Starts two reads of the public API, half a read of the application, and one bare commit per second. */
async function startReads({ pool }: System, { gateway, app }: Steady, customers: readonly SoakCustomer[]) {
  await pool.query('CREATE TABLE soak_commits (at timestamptz NOT NULL)')
  const customerOf = (round: number): SoakCustomer => customers[round % customers.length]!
  return {
    api: startLoad({
      spacingMs: API_READ_INTERVAL_MS,
      async call(round) {
        const { customer } = customerOf(round)
        const paths = ['/v1/organization', '/v1/workflows?limit=25', `/v1/workflows/${customer.workflowId}`]
        await send(`${gateway.url}${paths[round % paths.length]}`, { headers: apiHeadersOf(customer) })
      },
    }),
    app: startLoad({
      spacingMs: APP_READ_INTERVAL_MS,
      async call(round) {
        const { customer, headers } = customerOf(round)
        const deliveries = `webhook-sources/${customer.sourceId}/deliveries`
        const lists = ['runs', 'runs?status=failed', `runs?workflow_id=${customer.workflowId}`, deliveries]
        await send(`${app.url}/app/${lists[Math.floor(round / customers.length) % lists.length]}`, { headers })
      },
    }),
    commit: startLoad({
      spacingMs: COMMIT_INTERVAL_MS,
      call: async () => await pool.query('INSERT INTO soak_commits VALUES (now())'),
    }),
  }
}

function mayFail({ second }: (typeof PLANS)[number], error: string): boolean {
  return second === 'broken' && /^delivery_(rejected|unreachable|timed_out)/.test(error)
}
