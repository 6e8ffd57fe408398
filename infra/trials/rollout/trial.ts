import { createSignedInUser, freePort, waitUntil } from '@workflow-service/testkit'
import { type Callers, checkCallers, startCallers, untilAllEnded } from '../shared/callers.ts'
import { apiHeadersOf, createCustomer } from '../shared/customers.ts'
import { defineTrial, type TrialOptions } from '../shared/define-trial.ts'
import { secondsSince, toTable } from '../shared/figures.ts'
import { type Load, send, startLoad } from '../shared/load.ts'
import { peakResidentMiB } from '../shared/process-usage.ts'
import { type Service, type ServiceName, SERVICES, startSystem, type System } from '../shared/system.ts'
import { type ProxiedServer, type Proxy, startHaproxy } from './start-haproxy.ts'

export const trial = defineTrial({
  summary: 'restarts two processes of each service in turn behind HAProxy, under load, and counts what that broke',
  options: { delay: ['SHUTDOWN_DELAY_SECONDS of the services', 7] },
  async run({ options: { delay }, log }) {
    const report = await runRollout({ delaySeconds: delay, services: SERVICES, startProxy: startHaproxy, log })
    process.stdout.write(`${report.text}\n`)
    if (report.violations.length > 0) log(`The proxy's log:\n${report.proxyLog}`)
    return report.violations
  },
})

export interface RolloutOptions extends TrialOptions {
  /** `SHUTDOWN_DELAY_SECONDS` of every service that has it. */
  readonly delaySeconds: number
  /** The services to restart, one process after the other. */
  readonly services: readonly ServiceName[]
  readonly startProxy: typeof startHaproxy
  /** The pause of a caller between two requests. Default 20 ms. */
  readonly pauseMs?: number
}

export interface RolloutReport {
  readonly text: string
  /** Failed requests, and starts answered 202 that did not succeed or whose payload did not arrive exactly once. */
  readonly violations: readonly string[]
  /** The processes that the proxy marked up or down, and why. */
  readonly proxyLog: string
}

const CALLERS = { starts: 8, reads: 4 }
/** Of each kind, before the first restart. */
const REQUESTS_BEFORE = 50

/** One process of a service, on the same ports after each restart. */
interface Instance extends ProxiedServer {
  readonly service: ServiceName
}

/** A request that callers repeat, and what they saw. */
type Counted = Pick<Load, 'stop'> & {
  readonly name: string
  readonly count: () => number
  readonly failures: () => readonly string[]
}

/**
 * Runs two processes of each of the services behind a proxy, and restarts them one after the other while callers start
 * workflows and read from the public API and the application.
 */
export async function runRollout(options: RolloutOptions): Promise<RolloutReport> {
  const { delaySeconds, services, startProxy, rabbitMq, pauseMs = 20, log } = options
  await using stack = new AsyncDisposableStack()
  const instances = await chooseInstances(services)
  const behindProxy = SERVICES.filter((service) => service !== 'runner')
  const proxy = stack.adopt(
    await startProxy(
      Object.fromEntries(behindProxy.map((name) => [name, instances.filter(({ service }) => service === name)])),
    ),
    (started) => started.stop(),
  )
  const env = { SHUTDOWN_DELAY_SECONDS: String(delaySeconds), DISPATCHER_URL: proxy.urls['dispatcher'] ?? '' }
  const system = stack.use(await startSystem({ env, rabbitMq }))
  log(`starting ${instances.length} processes, with SHUTDOWN_DELAY_SECONDS=${delaySeconds}`)
  const running = await Promise.all(instances.map((instance) => start(system, proxy, instance)))
  const { starts, loads } = await startLoads(system, proxy, pauseMs)
  const beganMs = performance.now()
  await waitUntil(() => loads.every(({ count }) => count() > REQUESTS_BEFORE), { timeoutMs: 60_000 })
  const restarted = running.filter(({ name }) => services.some((service) => service === name))
  for (const service of restarted) {
    const restartMs = performance.now()
    await restart(service, proxy)
    const failures = loads.reduce((sum, each) => sum + each.failures().length, 0)
    log(`${service.name} restarted in ${secondsSince(restartMs)} s; ${failures} failed requests so far`)
  }
  const peaks = await readPeaks(running)
  await Promise.all(loads.map((load) => load.stop()))
  const took = secondsSince(beganMs)
  const { text, violations } = await compare(system, starts, loads)
  return {
    text: `${text}\n${restarted.length} restarts in ${took} s; peak memory: ${peaks}`,
    violations,
    proxyLog: proxy.log,
  }
}

/** Two processes of each service that is restarted, and one of each other. */
async function chooseInstances(restarted: readonly ServiceName[]): Promise<Instance[]> {
  const instances: Instance[] = []
  for (const service of SERVICES) {
    for (let count = 0; count < (restarted.includes(service) ? 2 : 1); count++) {
      const port = await freePort()
      const hasMetricsPort = service === 'gateway' || service === 'app'
      instances.push({ service, port, checkPort: hasMetricsPort ? await freePort() : port })
    }
  }
  return instances
}

async function start(system: System, proxy: Proxy, { service, port, checkPort }: Instance): Promise<Service> {
  const env = { PORT: String(port), METRICS_PORT: String(checkPort) }
  const running = await system.start(service, {
    env: service === 'app' ? { ...env, APP_URL: proxy.urls['app'] ?? '' } : env,
  })
  if (service !== 'runner') await proxy.waitUntilUp(service)
  return running
}

async function restart(service: Service, proxy: Proxy): Promise<void> {
  const exit = await service.process.stop(60_000)
  if (exit.code !== 0) throw new Error(`A ${service.name} ended with ${exit.signal ?? exit.code}, not with 0.`)
  await service.restart()
  if (service.name !== 'runner') await proxy.waitUntilUp(service.name)
}

async function startLoads(
  system: System,
  { urls: { gateway = '', app = '' } }: Proxy,
  pauseMs: number,
): Promise<{ starts: Callers; loads: Counted[] }> {
  const customer = await createCustomer(system, ['/orders'])
  const person = await createSignedInUser(system.pool, customer.organizationId)
  const starts = startCallers(system, customer, {
    gatewayUrls: [gateway],
    callers: CALLERS.starts,
    pauseMs: [pauseMs, pauseMs],
    startsPerSession: 1,
    repeats: false,
  })
  const read = (name: string, url: string, headers: Record<string, string>): Counted => {
    const load = startLoad({
      callers: CALLERS.reads,
      pauseMs: () => pauseMs,
      call: async () => await send(url, { headers }),
    })
    return { ...load, name, count: () => load.calls.length }
  }
  return {
    starts,
    loads: [
      {
        name: 'POST /v1/workflows/{id}/start',
        count: () => starts.requested.length,
        failures: () => starts.failures,
        stop: async () => await starts.stop(),
      },
      read('GET /v1/workflows/{id}', `${gateway}/v1/workflows/${customer.workflowId}`, apiHeadersOf(customer)),
      read('GET /app/me', `${app}/app/me`, person.headers),
    ],
  }
}

async function readPeaks(running: readonly Service[]): Promise<string> {
  const peaks = new Map<string, number>()
  for (const { name, process } of running) {
    const peak = await peakResidentMiB(process.pid)
    peaks.set(name, Math.max(peaks.get(name) ?? 0, peak ?? 0))
  }
  return [...peaks].map(([name, mib]) => `${name} ${mib.toFixed(0)} MiB`).join(', ')
}

/** Waits until every run has ended, and compares the accepted starts with the runs and the payloads. */
async function compare(
  system: System,
  starts: Callers,
  loads: readonly Counted[],
): Promise<{ text: string; violations: string[] }> {
  await untilAllEnded(system)
  const findings = await checkCallers(system, [{ ...starts, failures: [] }])
  const lost = [...findings.violations]
  if (findings.outcomeUnknown > 0)
    lost.push(`${findings.outcomeUnknown} runs do not know whether their payload arrived`)
  const rows = loads.map(({ name, count, failures }) => [
    name,
    count(),
    failures().length,
    failures()[0]?.slice(0, 60) ?? '',
  ])
  const accepted = ['starts answered 202 (failed: no success, or not exactly one payload)', findings.accepted]
  return {
    text: toTable(
      ['requests during the restarts', 'sent', 'failed', 'for example'],
      [...rows, [...accepted, lost.length, lost[0] ?? '']],
    ),
    violations: [...loads.flatMap(({ failures }) => failures()), ...lost],
  }
}
