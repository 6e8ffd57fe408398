import { randomBytes } from 'node:crypto'
import { startPostgres } from '@workflow-service/dev-servers'
import { Client, escapeIdentifier, escapeLiteral } from 'pg'
import { readConfig } from '../config.ts'
import { withDatabase } from '../database-url.ts'
import type { JestRun } from './jest-run.ts'

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

const commonPrefix = 'workflow_test_'
const lockClass = 7_236_115

/** The server that `TEST_DATABASE_URL` names, or an embedded one; with a migrated template on it. */
export async function startDatabaseServer(run: JestRun): Promise<DatabaseServer> {
  const given = readConfig().testDatabaseUrl
  const adminUrl = given ?? (await startTestPostgres(run))
  const admin = new Client({ connectionString: adminUrl })
  admin.on('error', () => {})
  await admin.connect().catch((error: Error) => {
    if (!given) throw error
    throw new Error(
      `The PostgreSQL in TEST_DATABASE_URL cannot be used (${error.message}): start it, or unset the variable`,
    )
  })
  // Held as long as this run lives: the next run sees by it what nobody needs any more.
  await admin.query('SELECT pg_advisory_lock($1, $2)', [lockClass, run.id])
  run.atEnd(async () => {
    if (given) await dropAll(admin, run.id)
    await admin.end().catch(() => {})
  })
  if (given) await dropAllOfDeadRuns(admin)

  const prefix = `${commonPrefix}${run.id}_`
  const ownerUrl = await makeOwner(admin, adminUrl, `${prefix}owner`)
  const template = `${prefix}template`
  const owner = decodeURIComponent(new URL(ownerUrl).username)
  await admin.query(`CREATE DATABASE ${escapeIdentifier(template)} OWNER ${escapeIdentifier(owner)} TEMPLATE template0`)
  // Not before it is needed: it loads Prisma, and runs of unit tests need neither.
  const { migrate } = await import('@workflow-service/database')
  await migrate({ databaseUrl: withDatabase(ownerUrl, template) })
  return { adminUrl, ownerUrl, template, prefix }
}

async function startTestPostgres({ atEnd }: JestRun): Promise<string> {
  const server = await startPostgres()
  atEnd(async () => await server.stop())
  return server.adminUrl
}

/** The tests run as a role that is no superuser, as production should. A given role that is none is taken as it is. */
async function makeOwner(admin: Client, adminUrl: string, name: string): Promise<string> {
  const shown = await admin.query<{ is_superuser: string }>('SHOW is_superuser')
  if (shown.rows[0]?.is_superuser !== 'on') return adminUrl
  const password = randomBytes(18).toString('base64url')
  await admin.query(`CREATE ROLE ${escapeIdentifier(name)} LOGIN PASSWORD ${escapeLiteral(password)}`)
  const url = new URL(adminUrl)
  url.username = name
  url.password = password
  return url.href
}

async function dropAllOfDeadRuns(admin: Client): Promise<void> {
  const names = [...(await listDatabases(admin, commonPrefix)), ...(await listRoles(admin, commonPrefix))]
  const runIds = new Set(names.map((name) => Number.parseInt(name.slice(commonPrefix.length), 10)))
  for (const runId of runIds) {
    const lock = await admin.query<{ free: boolean }>('SELECT pg_try_advisory_lock($1, $2) AS free', [lockClass, runId])
    if (!lock.rows[0]?.free) continue
    await dropAll(admin, runId)
    await admin.query('SELECT pg_advisory_unlock($1, $2)', [lockClass, runId])
  }
}

async function dropAll(admin: Client, runId: number): Promise<void> {
  const prefix = `${commonPrefix}${runId}_`
  for (const name of await listDatabases(admin, prefix)) {
    await admin.query(`DROP DATABASE IF EXISTS ${escapeIdentifier(name)} WITH (FORCE)`)
  }
  for (const name of await listRoles(admin, prefix)) await admin.query(`DROP ROLE IF EXISTS ${escapeIdentifier(name)}`)
}

async function listDatabases(admin: Client, prefix: string): Promise<string[]> {
  return await list(admin, 'SELECT datname AS name FROM pg_database WHERE starts_with(datname, $1)', prefix)
}

async function listRoles(admin: Client, prefix: string): Promise<string[]> {
  return await list(admin, 'SELECT rolname AS name FROM pg_roles WHERE starts_with(rolname, $1)', prefix)
}

async function list(admin: Client, statement: string, prefix: string): Promise<string[]> {
  const found = await admin.query<{ name: string }>(statement, [prefix])
  return found.rows.map(({ name }) => name)
}
