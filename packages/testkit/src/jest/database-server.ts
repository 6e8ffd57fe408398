import { randomBytes } from 'node:crypto'
import { startPostgres } from '@workflow-service/dev-servers'
import { Client, escapeIdentifier, escapeLiteral } from 'pg'
import { readConfig } from '../config.ts'
import { withDatabase } from '../database-url.ts'
import type { JestRun } from './jest-run.ts'

/** The PostgreSQL of this Jest run, as its test files use it. */
export interface DatabaseServer {
  /** May create databases. */
  adminUrl: string
  /** Connects as the owner of the test databases; the database in it is to be replaced. */
  ownerUrl: string
  /** A migrated database to clone. */
  template: string
  /** The first part of the names of this run's databases. */
  prefix: string
}

const COMMON_PREFIX = 'workflow_test_'
const LOCK_CLASS = 7_236_115

/** Uses the server in `TEST_DATABASE_URL`, or starts an embedded one, and creates the migrated template on it. */
export async function startDatabaseServer(run: JestRun): Promise<DatabaseServer> {
  const givenUrl = readConfig().testDatabaseUrl
  const adminUrl = givenUrl ?? (await startTestPostgres(run))
  const admin = new Client({ connectionString: adminUrl })
  admin.on('error', () => {})
  await admin.connect().catch((error: Error) => {
    if (!givenUrl) throw error
    throw new Error(
      `The PostgreSQL in TEST_DATABASE_URL cannot be used (${error.message}): start it, or unset the variable`,
    )
  })
  // This connection keeps the lock until the run ends. The next run drops the databases of runs without a lock.
  await admin.query('SELECT pg_advisory_lock($1, $2)', [LOCK_CLASS, run.id])
  run.atEnd(async () => {
    if (givenUrl) await dropAll(admin, run.id)
    await admin.end().catch(() => {})
  })
  if (givenUrl) await dropAllOfDeadRuns(admin)

  const prefix = `${COMMON_PREFIX}${run.id}_`
  const ownerUrl = await createOwner(admin, adminUrl, `${prefix}owner`)
  const template = `${prefix}template`
  const owner = decodeURIComponent(new URL(ownerUrl).username)
  await admin.query(`CREATE DATABASE ${escapeIdentifier(template)} OWNER ${escapeIdentifier(owner)} TEMPLATE template0`)
  // Imported here, because it loads Prisma, which a run of unit tests does not need.
  const { migrate } = await import('@workflow-service/database')
  await migrate({ databaseUrl: withDatabase(ownerUrl, template) })
  return { adminUrl, ownerUrl, template, prefix }
}

async function startTestPostgres({ atEnd }: JestRun): Promise<string> {
  const server = await startPostgres()
  atEnd(async () => await server.stop())
  return server.adminUrl
}

/** Creates the role that tests run as, which is no superuser. A given role that is no superuser is used itself. */
async function createOwner(admin: Client, adminUrl: string, name: string): Promise<string> {
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
  const names = [...(await listDatabases(admin, COMMON_PREFIX)), ...(await listRoles(admin, COMMON_PREFIX))]
  const runIds = new Set(names.map((name) => Number.parseInt(name.slice(COMMON_PREFIX.length), 10)))
  for (const runId of runIds) {
    const lock = await admin.query<{ free: boolean }>('SELECT pg_try_advisory_lock($1, $2) AS free', [
      LOCK_CLASS,
      runId,
    ])
    if (!lock.rows[0]?.free) continue
    await dropAll(admin, runId)
    await admin.query('SELECT pg_advisory_unlock($1, $2)', [LOCK_CLASS, runId])
  }
}

async function dropAll(admin: Client, runId: number): Promise<void> {
  const prefix = `${COMMON_PREFIX}${runId}_`
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
