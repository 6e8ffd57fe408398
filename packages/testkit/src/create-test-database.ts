import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { Client, DatabaseError, escapeIdentifier } from 'pg'
import { withDatabase } from './database-url.ts'
import { askForDatabase } from './infrastructure-client.ts'

/** A migrated database that only one test file uses. */
export interface TestDatabase {
  /** As the owner, no superuser. */
  url: string
  /** Removes it, also while connections are open. */
  drop: () => Promise<void>
}

/** Clones the migrated template, which takes about 50 ms; call it in `beforeAll`, `drop` it in `afterAll`. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const server = await askForDatabase()
  const name = `${server.prefix}${randomBytes(8).toString('hex')}`
  const owner = decodeURIComponent(new URL(server.ownerUrl).username)
  const create = `CREATE DATABASE ${escapeIdentifier(name)} OWNER ${escapeIdentifier(owner)}`
  await execute(server.adminUrl, `${create} TEMPLATE ${escapeIdentifier(server.template)}`)
  return {
    url: withDatabase(server.ownerUrl, name),
    drop: async () => await execute(server.adminUrl, `DROP DATABASE IF EXISTS ${escapeIdentifier(name)} WITH (FORCE)`),
  }
}

const objectInUse = '55006'

/** PostgreSQL refuses to clone a template at the moments when another session looks into it, autovacuum for one. */
async function execute(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    for (let attempt = 1; ; attempt++) {
      try {
        await client.query(statement)
        return
      } catch (error) {
        if (!(error instanceof DatabaseError) || error.code !== objectInUse || attempt === 50) throw error
        await pause(50)
      }
    }
  } finally {
    await client.end()
  }
}
