import { createServer } from 'node:http'
import { startPostgres, startRabbitMq } from '@workflow-service/dev-servers'
import { close, listen } from '../loopback-server.ts'

/** What the control server starts. Without `stop`, which is no value of JSON, test files get it. */
const SERVERS = { database: startDatabaseServer, broker: startBrokerServer }
export type Servers = typeof SERVERS

/**
 * Starts the control server, from which test files request PostgreSQL and RabbitMQ. Each starts at its first request,
 * so a run of unit tests starts neither. `stop` stops all.
 */
export async function startInfrastructure() {
  const started = new Map<keyof Servers, Promise<{ readonly stop: () => Promise<void> }>>()
  const server = createServer(({ url = '' }, response) => {
    const name = url.slice(1) as keyof Servers
    const starting = started.get(name) ?? SERVERS[name]()
    started.set(name, starting)
    starting.then(
      (value) => response.end(JSON.stringify(value)),
      (error: unknown) => response.writeHead(500).end(error instanceof Error ? error.message : String(error)),
    )
  })
  server.requestTimeout = 0
  const url = `http://127.0.0.1:${await listen(server)}`
  const stop = async () => {
    await close(server)
    await Promise.all([...started.values()].map((starting) => starting.then((each) => each.stop()).catch(() => {})))
  }
  return { url, stop }
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
