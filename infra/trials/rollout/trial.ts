import { createSignedInUser, freePort, waitUntil } from '@workflow-service/testkit'
import { checkCallers, startCallers, untilAllEnded } from '../shared/callers.ts'
import { apiHeadersOf, createCustomer } from '../shared/customers.ts'
import { defineTrial, type TrialOptions } from '../shared/define-trial.ts'
import { secondsSince, toTable } from '../shared/figures.ts'
import { send, startLoad } from '../shared/load.ts'
import { peakResidentMiB } from '../shared/process-usage.ts'
import { type Service, type ServiceName, SERVICES, startSystem, type System } from '../shared/system.ts'
import { type ProxiedServer, type Proxy, startHaproxy } from './start-haproxy.ts'

export const trial = defineTrial({
  summary: 'restarts two processes of each service in turn behind HAProxy, under load, and counts what that broke',
  options: { delay: ['SHUTDOWN_DELAY_SECONDS of the services', 7] },
  async run({ options: { delay }, log }) {
    const report = await runRollout({ delaySeconds: delay, services: SERVICES, startProxy: startHaproxy, log })
    process.stdout.write(`${report.text}\n`)
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

const CALLERS = { starts: 8, reads: 4 }
/** Of each kind, before the first restart. */
const REQUESTS_BEFORE = 50

/**
 * Runs two processes of each of the services behind a proxy, and restarts them one after the other while callers start
 * workflows and read from the public API and the application. The violations are failed requests, and starts answered
 * 202 that did not succeed or whose payload did not arrive exactly once.
 */
export async function runRollout(options: RolloutOptions): Promise<{ text: string; violations: readonly string[] }> {
  const { delaySeconds, services, startProxy, rabbitMq, openDatabase, pauseMs = 20, log } = options
  await using stack = new AsyncDisposableStack()
  const servers = await chooseServers(services)
  const proxy = stack.adopt(await startProxy(Object.fromEntries(servers)), (started) => started.stop())
  const { dispatcher: dispatcherUrl = '', app: appUrl = '' } = proxy.urls
  const env = { SHUTDOWN_DELAY_SECONDS: String(delaySeconds), DISPATCHER_URL: dispatcherUrl, APP_URL: appUrl }
  const system = stack.use(await startSystem({ env, rabbitMq, openDatabase }))
  const start = async (name: ServiceName, { port, checkPort }: ProxiedServer): Promise<Service> => {
    const service = await system.start(name, { env: { PORT: String(port), METRICS_PORT: String(checkPort) } })
    await proxy.waitUntilUp(name)
    return service
  }
  log(`starting the services, with SHUTDOWN_DELAY_SECONDS=${delaySeconds}`)
  const running = await Promise.all([...servers].flatMap(([name, list]) => list.map((server) => start(name, server))))
  const { starts, loads } = await startLoads(system, proxy, pauseMs)
  const beganMs = performance.now()
  await waitUntil(() => loads.every(({ calls }) => calls.length > REQUESTS_BEFORE), { timeoutMs: 60_000 })
  const restarted = running.filter(({ name }) => services.some((service) => service === name))
  for (const service of restarted) {
    const restartMs = performance.now()
    const exit = await service.process.stop(60_000)
    if (exit.code !== 0) throw new Error(`A ${service.name} ended with ${exit.signal ?? exit.code}, not with 0.`)
    await service.restart()
    await proxy.waitUntilUp(service.name)
    const failures = loads.flatMap((load) => load.failures())
    log(`${service.name} restarted in ${secondsSince(restartMs)} s; ${failures.length} failed requests so far`)
  }
  const peaks = await readPeaks(running)
  await Promise.all(loads.map((load) => load.stop()))
  const took = secondsSince(beganMs)

  await untilAllEnded(system)
  const { accepted, outcomeUnknown, violations } = await checkCallers(system, [{ ...starts, failures: [] }])
  const unknown = `${outcomeUnknown} runs do not know whether their payload arrived`
  const lost = [...violations, ...(outcomeUnknown > 0 ? [unknown] : [])]
  const rows = [
    ...loads.map(({ name, calls, failures }) => ({ name, sent: calls.length, failures: failures() })),
    { name: 'starts answered 202 (failed: no success, or not exactly one payload)', sent: accepted, failures: lost },
  ]
  const table = toTable(
    ['requests during the restarts', 'sent', 'failed', 'for example'],
    rows.map(({ name, sent, failures }) => [name, sent, failures.length, failures[0]?.slice(0, 60) ?? '']),
  )
  const failures = rows.flatMap((row) => row.failures)
  if (failures.length > 0) log(`The proxy's log:\n${proxy.log}`)
  return {
    text: `${table}\n${restarted.length} restarts in ${took} s; peak memory: ${peaks}`,
    violations: failures,
  }
}

/** Two servers of each service that is restarted, and one of each other, at the same ports after each restart. */
async function chooseServers(restarted: readonly ServiceName[]): Promise<Map<ServiceName, ProxiedServer[]>> {
  const servers = new Map<ServiceName, ProxiedServer[]>()
  for (const name of SERVICES) {
    const hasMetricsPort = name === 'gateway' || name === 'app'
    const choose = async (): Promise<ProxiedServer> => {
      const port = await freePort()
      return { port, checkPort: hasMetricsPort ? await freePort() : port }
    }
    servers.set(name, restarted.includes(name) ? [await choose(), await choose()] : [await choose()])
  }
  return servers
}

/** Starts the callers. Of each kind of request, `calls` are those so far. */
async function startLoads(system: System, { urls: { gateway = '', app = '' } }: Proxy, pauseMs: number) {
  const customer = await createCustomer(system, ['/orders'])
  const person = await createSignedInUser(system.pool, customer.organizationId)
  const starts = startCallers(system, customer, {
    gatewayUrls: [gateway],
    callers: CALLERS.starts,
    pauseMs: [pauseMs, pauseMs],
    startsPerSession: 1,
    repeats: false,
  })
  const { requested: calls, failures, stop } = starts
  const read = (name: string, url: string, headers: Record<string, string>) => ({
    name,
    ...startLoad({
      callers: CALLERS.reads,
      pauseMs: () => pauseMs,
      call: async () => await send(url, { headers }),
    }),
  })
  return {
    starts,
    loads: [
      { name: 'POST /v1/workflows/{id}/start', calls, failures: () => failures, stop },
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
