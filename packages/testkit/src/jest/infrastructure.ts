import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { randomInt } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { startEmbeddedPostgres } from '@workflow-service/database/embedded-postgres'
import { Client, escapeIdentifier } from 'pg'
import { readConfig } from '../config.ts'
import { withDatabase } from '../database-url.ts'
import { testSettings } from '../postgres.ts'
import { callManagement, startRabbitMq } from '../rabbitmq.ts'
import { makeRunFolder } from '../run-folder.ts'

/** What a test file learns about the run's PostgreSQL. */
export interface DatabaseServer {
  /** May create databases. */
  adminUrl: string
  /** The role that owns the clones; its address but for the database. */
  ownerUrl: string
  template: string
  /** What the names of this run's databases begin with. */
  prefix: string
}

/** What a test file learns about the run's RabbitMQ. */
export interface BrokerServer {
  url: string
  /** Null when a broker was given by AMQP_URL and has no management API on port 15672. */
  managementUrl: string | null
  /** What the names of this run's virtual hosts begin with. */
  prefix: string
}

/** The servers of one Jest run, started when the first test file asks. */
export interface Infrastructure {
  url: string
  stop: () => Promise<void>
}

const databasePrefix = 'workflow_test_'
const lockClass = 7_236_115

/**
 * Starts the control server that the test files ask for a database or a broker. Runs of unit tests alone never ask and
 * pay for neither.
 */
export async function startInfrastructure(say: (line: string) => void): Promise<Infrastructure> {
  const runId = randomInt(1, 2 ** 31)
  const stops: (() => Promise<void>)[] = []
  const database = lazily(async () => await startDatabaseServer(runId, stops))
  const broker = lazily(async () => await startBrokerServer(runId, say, stops))

  const server = createServer((request, response) => {
    const wanted = request.url === '/database' ? database : request.url === '/broker' ? broker : undefined
    if (!wanted) {
      response.writeHead(404).end()
      return
    }
    wanted().then(
      (value) => response.end(JSON.stringify(value)),
      (error: unknown) => response.writeHead(500).end(error instanceof Error ? error.message : String(error)),
    )
  })
  server.requestTimeout = 0
  const url = await listen(server)
  return {
    url,
    async stop() {
      server.closeAllConnections()
      server.close()
      await Promise.allSettled([database.started(), broker.started()])
      await Promise.all(stops.map(async (stop) => await stop()))
    },
  }
}

function lazily<Value>(start: () => Promise<Value>) {
  let started: Promise<Value> | undefined
  return Object.assign(() => (started ??= start()), { started: () => started })
}

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function startDatabaseServer(runId: number, stops: (() => Promise<void>)[]): Promise<DatabaseServer> {
  const given = readConfig().testDatabaseUrl
  const { adminUrl, ownerUrl } = given ? { adminUrl: given, ownerUrl: given } : await startTestPostgres(stops)
  const prefix = `${databasePrefix}${runId}_`
  const template = `${prefix}template`
  const owner = decodeURIComponent(new URL(ownerUrl).username)
  const admin = new Client({ connectionString: adminUrl })
  await admin.connect()
  admin.on('error', () => {})
  // Held as long as this run lives: the next run sees by it which databases nobody needs any more.
  await admin.query('SELECT pg_advisory_lock($1, $2)', [lockClass, runId])
  stops.unshift(async () => {
    if (given) await dropDatabases(admin, prefix)
    await admin.end().catch(() => {})
  })
  if (given) await dropDatabasesOfDeadRuns(admin)
  await admin.query(`CREATE DATABASE ${escapeIdentifier(template)} OWNER ${escapeIdentifier(owner)} TEMPLATE template0`)
  // Not before it is needed: it loads Prisma, and runs of unit tests need neither.
  const { migrate } = await import('@workflow-service/database')
  await migrate({ databaseUrl: withDatabase(ownerUrl, template) })
  return { adminUrl, ownerUrl, template, prefix }
}

async function startTestPostgres(stops: (() => Promise<void>)[]) {
  const folder = await makeRunFolder()
  const server = await startEmbeddedPostgres({ dataDir: join(folder, 'data'), settings: testSettings })
  stops.push(async () => {
    await server.stop('immediate')
    await rm(folder, { recursive: true, force: true })
  })
  return { adminUrl: server.adminUrl, ownerUrl: server.url }
}

async function dropDatabasesOfDeadRuns(admin: Client): Promise<void> {
  for (const name of await listDatabases(admin, databasePrefix)) {
    const runId = Number.parseInt(name.slice(databasePrefix.length), 10)
    const lock = await admin.query<{ free: boolean }>('SELECT pg_try_advisory_lock($1, $2) AS free', [lockClass, runId])
    if (!lock.rows[0]?.free) continue
    await dropDatabase(admin, name)
    await admin.query('SELECT pg_advisory_unlock($1, $2)', [lockClass, runId])
  }
}

async function dropDatabases(admin: Client, prefix: string): Promise<void> {
  for (const name of await listDatabases(admin, prefix)) await dropDatabase(admin, name)
}

async function listDatabases(admin: Client, prefix: string): Promise<string[]> {
  const found = await admin.query<{ datname: string }>(
    'SELECT datname FROM pg_database WHERE starts_with(datname, $1) ORDER BY datname',
    [prefix],
  )
  return found.rows.map((row) => row.datname)
}

async function dropDatabase(admin: Client, name: string): Promise<void> {
  await admin.query(`DROP DATABASE IF EXISTS ${escapeIdentifier(name)} WITH (FORCE)`)
}

async function startBrokerServer(
  runId: number,
  say: (line: string) => void,
  stops: (() => Promise<void>)[],
): Promise<BrokerServer> {
  const prefix = `test-${runId}-`
  const given = readConfig().amqpUrl
  if (given) return { url: given, managementUrl: await findManagement(given), prefix }
  const broker = await startRabbitMq({ say })
  stops.push(async () => await broker.stop())
  return { url: broker.url, managementUrl: broker.managementUrl, prefix }
}

/** The management API beside a given broker, at its usual port and with the same credentials. */
async function findManagement(amqpUrl: string): Promise<string | null> {
  const { hostname, username, password } = new URL(amqpUrl)
  const url = `http://${username || 'guest'}:${password || 'guest'}@${hostname}:15672`
  const answer = await callManagement(url, 'GET', '/api/overview').catch(() => undefined)
  return answer?.ok ? url : null
}
