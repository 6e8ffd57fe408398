import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, DatabaseError } from 'pg'
import { requestServer } from './request-server.ts'

/** A migrated database that one test file owns. */
export type TestDatabase = Awaited<ReturnType<typeof createTestDatabase>>

/** Clones a migrated template, in about 50 ms. `useTestDatabase` also opens, closes and drops it. */
export async function createTestDatabase() {
  return await cloneDatabase(await requestServer('database'))
}

/**
 * Clones a database to which nothing is connected, by copying its files: the default of PostgreSQL, which writes each
 * page to its log, takes four times the processor time for one as small as the template.
 */
export async function cloneDatabase({ adminUrl, templateUrl }: { adminUrl: string; templateUrl: string }) {
  const name = `test_${randomBytes(8).toString('hex')}`
  const url = new URL(templateUrl)
  const template = url.pathname.slice(1)
  await execute(adminUrl, `CREATE DATABASE ${name} OWNER ${url.username} TEMPLATE ${template} STRATEGY file_copy`)
  url.pathname = `/${name}`
  return {
    /** Connects as the owner, who is no superuser. */
    url: url.href,
    /** Drops the database, also while connections are open. */
    drop: () => execute(adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  }
}

/** PostgreSQL's error code `object_in_use`. */
const OBJECT_IN_USE = '55006'

/**
 * Retries while another session, such as autovacuum, is connected to the template: PostgreSQL then refuses to clone it.
 */
async function execute(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    for (let attempt = 1; ; attempt++) {
      try {
        await client.query(statement)
        return
      } catch (error) {
        if (!(error instanceof DatabaseError) || error.code !== OBJECT_IN_USE || attempt === 50) throw error
        await sleep(50)
      }
    }
  } finally {
    await client.end()
  }
}
