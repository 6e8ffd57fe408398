import { createServer } from 'node:http'
import { startPostgres, startRabbitMq } from '@workflow-service/dev-servers'
import { close, listen } from '../loopback-server.ts'

/** The variable with the URL of this Jest run's control server, for the workers. */
const CONTROL_URL = 'WORKFLOW_SERVICE_TESTKIT_URL'

/** What the control server starts. Without `stop`, which is no value of JSON, test files get it. */
const SERVERS = { database: startDatabaseServer, broker: startBrokerServer }
type ServerName = keyof typeof SERVERS

/**
 * Starts the control server, from which test files request PostgreSQL and RabbitMQ. Each starts at its first request,
 * so a run of unit tests starts neither. Resolves to a function that stops all.
 */
export async function startInfrastructure(): Promise<() => Promise<void>> {
  const started = new Map<ServerName, Promise<{ readonly stop: () => Promise<void> }>>()
  const server = createServer(({ url = '' }, response) => {
    const name = url.slice(1) as ServerName
    const starting = started.get(name) ?? SERVERS[name]()
    started.set(name, starting)
    starting.then(
      (value) => response.end(JSON.stringify(value)),
      (error: unknown) => response.writeHead(500).end(error instanceof Error ? error.message : String(error)),
    )
  })
  server.requestTimeout = 0
  process.env[CONTROL_URL] = `http://127.0.0.1:${await listen(server)}`
  return async () => {
    await close(server)
    await Promise.all([...started.values()].map((starting) => starting.then(({ stop }) => stop()).catch(() => {})))
  }
}

/**
 * Gets a server of this Jest run from the control server, which starts it at the first call: RabbitMQ in about 5 s, or
 * a minute if it has to be installed.
 */
export async function requestServer<Name extends ServerName>(
  name: Name,
): Promise<Omit<Awaited<ReturnType<(typeof SERVERS)[Name]>>, 'stop'>> {
  const controlUrl = process.env[CONTROL_URL]
  if (!controlUrl)
    throw new Error(
      'Test databases and brokers exist inside of Jest only: run "npm test", or jest with infra/jest.config.mjs',
    )
  // A worker runs many test files, and the server may be closing the connection that an earlier one left open.
  const answer = await fetch(`${controlUrl}/${name}`, { headers: { connection: 'close' } })
  if (!answer.ok) throw new Error(await answer.text())
  return (await answer.json()) as Awaited<ReturnType<(typeof SERVERS)[Name]>>
}

/** Starts a PostgreSQL with a migrated database to clone, whose owner is no superuser. */
async function startDatabaseServer() {
  const { adminUrl, url: templateUrl, stop } = await startPostgres()
  // Imported here, because it loads Prisma, which a run of unit tests does not need.
  const { migrate } = await import('@workflow-service/database')
  await migrate({ databaseUrl: templateUrl })
  return { adminUrl, templateUrl, stop }
}

/** Uses the broker in `AMQP_URL`, whose management API has port 15672 of the same host by default, or starts a node. */
async function startBrokerServer() {
  const { AMQP_URL: url, AMQP_MANAGEMENT_URL: givenManagementUrl } = process.env
  if (!url) return await startRabbitMq({ log: (line) => process.stderr.write(`${line}\n`) })
  const { hostname, username, password } = new URL(url)
  const managementUrl = givenManagementUrl || `http://${username || 'guest'}:${password || 'guest'}@${hostname}:15672`
  return { url, managementUrl, stop: async () => {} }
}
