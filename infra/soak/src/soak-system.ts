import { type Environment, type Service, startEnvironment } from '@workflow-service/bench/environment'
import { createDatabase, type Database } from '@workflow-service/database'
import { callManagementApi } from '@workflow-service/dev-servers'
import { createSignedInUser, startRabbitMq } from '@workflow-service/testkit'
import type { Part } from '../../../services/runner/test/chaos/service-system.ts'
import { createForwardingCustomer, type ForwardingCustomer } from './forwarding-customer.ts'
import { type SoakEndpoint, startSoakEndpoint } from './soak-endpoint.ts'

/** A customer of the soak. */
export interface SoakCustomer extends ForwardingCustomer {
  /** Its share of all starts. */
  readonly share: number
  readonly isBroken: boolean
  /** The header that signs a person in to the application. */
  readonly cookie: string
}

/** The whole service with two gateways, dispatchers and runners: incidents hit the second of each, figures are of the first. */
export interface SoakSystem {
  readonly environment: Environment
  readonly db: Database
  readonly endpoint: SoakEndpoint
  readonly customers: readonly SoakCustomer[]
  /** Services that no incident ends: what they hold after hours, they have collected in hours. */
  readonly steady: { readonly [name in 'gateway' | 'runner' | 'dispatcher' | 'app']: Service }
  readonly gatewayUrls: readonly string[]
  /** What incidents hit. */
  readonly parts: readonly Part[]
  /** Whether an incident is under way or ended less than `SETTLE_MS` before this time, in ms since 1970. */
  isDisturbed(at: number): boolean
  close(): Promise<void>
}

const CUSTOMERS = [
  { name: 'Acme', second: 'audit', share: 0.45 },
  { name: 'Globex', second: 'audit', share: 0.35 },
  { name: 'Initech', second: 'slow', share: 0.1 },
  { name: 'Umbrella', second: 'broken', share: 0.1 },
] as const

/** A lease of a killed runner ends after 15 s, the sweep finds its session within 2 s; the rest is for the backlog. */
const SETTLE_MS = 25_000
/** Checks at the end read every run. */
const STATEMENT_TIMEOUT_MS = 300_000

/** Starts the system with its customers. */
export async function startSoakSystem(): Promise<SoakSystem> {
  const rabbitMq = await startRabbitMq()
  const environment = await startEnvironment({ rabbitMq })
  const endpoint = await startSoakEndpoint()
  const db = createDatabase({
    url: environment.postgres.url,
    applicationName: 'soak',
    maxConnections: 4,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  })
  const close = async (): Promise<void> => {
    endpoint.close()
    await db.close()
    await environment.close()
  }
  try {
    // PostgreSQL is restarted under this connection.
    environment.client.on('error', () => {})
    const { postgres } = environment
    const [dispatcher, secondDispatcher] = [await environment.startDispatcher(), await environment.startDispatcher()]
    const [gateway, secondGateway] = [await environment.startGateway(), await environment.startGateway()]
    const app = await environment.startApp(dispatcher.url)
    const customers: SoakCustomer[] = []
    for (const plan of CUSTOMERS) customers.push(await createSoakCustomer(environment, dispatcher, endpoint.url, plan))
    const runner = await environment.startRunner(dispatcher.url)
    const secondRunner = await environment.startRunner(secondDispatcher.url)

    const disturbances = createDisturbances()
    return {
      environment,
      db,
      endpoint,
      customers,
      steady: { gateway, runner, dispatcher, app },
      gatewayUrls: [gateway.url, secondGateway.url],
      parts: [
        servicePart('gateway', secondGateway),
        servicePart('dispatcher', secondDispatcher),
        servicePart('runner', secondRunner),
        { ...postgresPart, restart: async () => await postgres.restart() },
        { ...NOTHING, name: 'rabbitmq', kill: () => rabbitMq.kill(), restart: () => rabbitMq.restart() },
        {
          ...NOTHING,
          name: 'every connection to the broker',
          kill: async () => await closeConnections(rabbitMq.managementUrl),
        },
      ].map(disturbances.watch),
      isDisturbed: disturbances.isDisturbed,
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Notes when incidents hit the parts that it watches. */
function createDisturbances(): { watch: (part: Part) => Part; isDisturbed: SoakSystem['isDisturbed'] } {
  const incidents: { begin: number; end: number }[] = []
  const watch = (part: Part): Part => {
    let current = { begin: 0, end: 0 }
    const begin = (): void => {
      current = { begin: Date.now(), end: Infinity }
      incidents.push(current)
    }
    const end = (): void => {
      current.end = Date.now() + SETTLE_MS
    }
    return {
      name: part.name,
      kill: async () => {
        begin()
        await part.kill()
      },
      restart: async () => {
        await part.restart()
        end()
      },
      pause: () => {
        begin()
        part.pause()
      },
      resume: () => {
        part.resume()
        end()
      },
    }
  }
  return { watch, isDisturbed: (at) => incidents.some(({ begin, end }) => at >= begin && at < end) }
}

const NOTHING = { kill: async () => {}, restart: async () => {}, pause: () => {}, resume: () => {} }

/**
 * An orderly restart, which breaks every connection: a crash would also reset the counters of dead rows that autovacuum and
 * this report use.
 */
const postgresPart = { ...NOTHING, name: 'postgres' }

function servicePart(name: string, service: Service): Part {
  return {
    name,
    async kill() {
      service.process.kill('SIGKILL')
      await service.process.exited
    },
    restart: () => service.restart(),
    pause: () => void service.process.kill('SIGSTOP'),
    resume: () => void service.process.kill('SIGCONT'),
  }
}

async function closeConnections(managementUrl: string): Promise<void> {
  const answer = await callManagementApi(managementUrl, 'GET', '/api/connections')
  const connections = (await answer.json()) as { name: string }[]
  for (const { name } of connections) {
    await callManagementApi(managementUrl, 'DELETE', `/api/connections/${encodeURIComponent(name)}`)
  }
}

async function createSoakCustomer(
  environment: Environment,
  dispatcher: Service,
  endpointUrl: string,
  { name, second, share }: (typeof CUSTOMERS)[number],
): Promise<SoakCustomer> {
  const paths = [`/${name}/orders`, `/${name}/${second}`] as const
  const customer = await createForwardingCustomer(environment, dispatcher, { name, endpointUrl, paths })
  const { cookie } = await createSignedInUser(environment.client, customer.organizationId)
  return { ...customer, share, isBroken: second === 'broken', cookie: `${cookie.name}=${cookie.value}` }
}
