import { createCustomer, type Customer } from '@workflow-service/bench/customer'
import { type Environment, type Service, startEnvironment } from '@workflow-service/bench/environment'
import { peakResidentMiB } from '@workflow-service/bench/process-usage'
import {
  createSignedInUser,
  type CustomerEndpoint,
  freePort,
  type Haproxy,
  startCustomerEndpoint,
  startHaproxy,
  waitUntil,
} from '@workflow-service/testkit'
import { type LoadCounts, type RepeatedRequest, startLoad } from './load.ts'

export const SERVICES = ['gateway', 'dispatcher', 'runner', 'app'] as const
export type ServiceName = (typeof SERVICES)[number]

export interface RolloutOptions {
  /** `SHUTDOWN_DELAY_SECONDS` of every service that has it. */
  readonly delaySeconds: number
  /** The services to restart, one process after the other. */
  readonly services: readonly ServiceName[]
  readonly log: (line: string) => void
}

/** What a rollout did to the requests and starts made meanwhile. */
export interface RolloutReport {
  readonly seconds: number
  readonly restarts: number
  readonly loads: readonly LoadCounts[]
  /** The most resident memory of a process of each service, in MiB. */
  readonly peakMiB: ReadonlyMap<ServiceName, number>
  /** Starts that were answered 202. */
  readonly accepted: number
  /** For each accepted start that did not succeed, or whose payload arrived never or twice, what is wrong. */
  readonly lost: readonly string[]
  /** The processes that the proxy marked up or down, and why. */
  readonly proxyLog: string
}

const PROCESSES = 2
const DRAIN_TIMEOUT_MS = 120_000

/** One process of a service; `restart` ends it with SIGTERM and starts it again on the same ports. */
interface Instance {
  readonly service: ServiceName
  readonly ports: { readonly port: number; readonly checkPort: number }
  running: Service | undefined
}

/**
 * Runs two processes of each service behind HAProxy, and restarts them one after the other while callers start workflows and read
 * from the public API and the application.
 */
export async function runRollout({ delaySeconds, services, log }: RolloutOptions): Promise<RolloutReport> {
  const environment = await startEnvironment({})
  const endpoint = await startCustomerEndpoint()
  let proxy: Haproxy | undefined
  try {
    const instances = await chooseInstances()
    proxy = await startHaproxy(
      Object.fromEntries(
        SERVICES.filter((name) => name !== 'runner').map((name) => [
          name,
          instances.filter(({ service }) => service === name).map(({ ports }) => ports),
        ]),
      ),
    )
    const system: RolloutSystem = { environment, endpoint, proxy, delaySeconds }
    log(`starting ${PROCESSES} processes of each service, with SHUTDOWN_DELAY_SECONDS=${delaySeconds}`)
    await Promise.all(instances.map((instance) => start(system, instance)))
    const customer = await createCustomer(environment, instances.find(isDispatcher)!.running!, endpoint.url)
    const accepted = new Map<number, string>()
    const load = startLoad(await requestsOf(system, customer, accepted))
    const beganMs = performance.now()
    await waitUntil(() => load.counts.every(({ requests }) => requests > 50), { timeoutMs: 60_000 })
    const restarted = instances.filter(({ service }) => services.includes(service))
    for (const instance of restarted) {
      const restartMs = performance.now()
      await restart(system, instance)
      const failures = load.counts.reduce((sum, counts) => sum + counts.failures.length, 0)
      log(`${instance.service} restarted in ${seconds(restartMs)} s; ${failures} failed requests so far`)
    }
    const peakMiB = await readPeaks(instances)
    await load.stop()
    const tookSeconds = Number(seconds(beganMs))
    log(`waiting for ${accepted.size} starts to reach the endpoint`)
    const lost = await findLostStarts(system, accepted)
    return {
      seconds: tookSeconds,
      restarts: restarted.length,
      loads: load.counts,
      peakMiB,
      accepted: accepted.size,
      lost,
      proxyLog: proxy.log,
    }
  } finally {
    await environment.close()
    await proxy?.stop()
    await endpoint.close()
  }
}

async function readPeaks(instances: readonly Instance[]): Promise<Map<ServiceName, number>> {
  const peaks = new Map<ServiceName, number>()
  for (const { service, running } of instances) {
    const peak = running ? await peakResidentMiB(running.process.pid) : null
    peaks.set(service, Math.max(peaks.get(service) ?? 0, peak ?? 0))
  }
  return peaks
}

interface RolloutSystem {
  readonly environment: Environment
  readonly endpoint: CustomerEndpoint
  readonly proxy: Haproxy
  readonly delaySeconds: number
}

async function chooseInstances(): Promise<Instance[]> {
  const instances: Instance[] = []
  for (const service of SERVICES) {
    for (let count = 0; count < PROCESSES; count++) {
      const port = await freePort()
      const hasMetricsPort = service === 'gateway' || service === 'app'
      instances.push({
        service,
        ports: { port, checkPort: hasMetricsPort ? await freePort() : port },
        running: undefined,
      })
    }
  }
  return instances
}

function isDispatcher({ service }: Instance): boolean {
  return service === 'dispatcher'
}

async function start({ environment, proxy, delaySeconds }: RolloutSystem, instance: Instance): Promise<void> {
  const { service, ports } = instance
  const env = {
    PORT: String(ports.port),
    METRICS_PORT: String(ports.checkPort),
    SHUTDOWN_DELAY_SECONDS: String(delaySeconds),
  }
  const dispatcherUrl = proxy.urls['dispatcher'] ?? ''
  const starts = {
    gateway: () => environment.startGateway(env),
    dispatcher: () => environment.startDispatcher(env),
    runner: () => environment.startRunner(dispatcherUrl, env),
    app: () => environment.startApp(dispatcherUrl, { ...env, APP_URL: proxy.urls['app'] ?? '' }),
  }
  instance.running = await starts[service]()
  if (service !== 'runner') await proxy.waitUntilUp(service)
}

async function restart(system: RolloutSystem, instance: Instance): Promise<void> {
  const exit = await instance.running?.process.stop(60_000)
  if (exit?.code !== 0) throw new Error(`A ${instance.service} ended with ${exit?.signal ?? exit?.code}, not with 0.`)
  await start(system, instance)
}

async function requestsOf(
  { environment, proxy }: RolloutSystem,
  { organizationId, apiKey, workflowId }: Customer,
  accepted: Map<number, string>,
): Promise<RepeatedRequest[]> {
  const { cookie } = await createSignedInUser(environment.client, organizationId)
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }
  const { gateway = '', app = '' } = proxy.urls
  return [
    {
      name: 'POST /v1/workflows/{id}/start',
      callers: 8,
      status: 202,
      request: (number) => ({
        url: `${gateway}/v1/workflows/${workflowId}/start`,
        init: { method: 'POST', headers, body: JSON.stringify({ context: `text: ${textOf(number)}` }) },
      }),
      onAnswer: (number, body) => accepted.set(number, (JSON.parse(body) as { id: string }).id),
    },
    {
      name: 'GET /v1/workflows/{id}',
      callers: 4,
      status: 200,
      request: () => ({ url: `${gateway}/v1/workflows/${workflowId}`, init: { headers } }),
    },
    {
      name: 'GET /app/me',
      callers: 4,
      status: 200,
      request: () => ({ url: `${app}/app/me`, init: { headers: { cookie: `${cookie.name}=${cookie.value}` } } }),
    },
  ]
}

function textOf(number: number): string {
  return `start ${number}`
}

/** Waits until every run has ended, and compares the accepted starts with the runs and the payloads. */
async function findLostStarts(
  { environment, endpoint }: RolloutSystem,
  accepted: ReadonlyMap<number, string>,
): Promise<string[]> {
  const { client } = environment
  await waitUntil(
    async () => {
      const { rowCount } = await client.query(`SELECT FROM starts WHERE status NOT IN ('succeeded', 'failed') LIMIT 1`)
      return rowCount === 0
    },
    { timeoutMs: DRAIN_TIMEOUT_MS },
  )
  const { rows } = await client.query<{ id: string; status: string }>('SELECT id, status FROM starts')
  const statuses = new Map(rows.map(({ id, status }) => [id, status]))
  const arrivals = Map.groupBy(endpoint.requests, ({ json }) => (json as { text?: string } | undefined)?.text)
  return [...accepted].flatMap(([number, id]) => {
    const status = statuses.get(id) ?? 'not recorded'
    const arrived = arrivals.get(textOf(number))?.length ?? 0
    return status === 'succeeded' && arrived === 1 ? [] : [`${id}: ${status}, arrived ${arrived} times`]
  })
}

function seconds(sinceMs: number): string {
  return ((performance.now() - sinceMs) / 1_000).toFixed(1)
}
