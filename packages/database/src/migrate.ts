import { fileURLToPath } from 'node:url'
import { Client } from 'pg'

const migrationsDir = fileURLToPath(new URL('../migrations', import.meta.url))

/**
 * Brings the database to the newest schema: idempotent, and safe when several run at once, since each waits for the
 * advisory lock of the one before. Needs no superuser and no extension, but the right to create in the schema: see
 * checkServer. Its connection is closed when it resolves or rejects.
 */
export async function migrate(options: { databaseUrl: string }): Promise<{ applied: string[] }> {
  // 10 MiB that only a process that migrates needs.
  const { runner } = await import('node-pg-migrate')
  const silent = { info: () => {}, warn: () => {}, error: () => {} }
  // The runner's own connection would still be closing by then, and would end the process if the server ended it first.
  const client = new Client({ connectionString: options.databaseUrl, application_name: 'migrate' })
  client.on('error', () => {})
  await client.connect()
  try {
    const ran = await runner({
      dbClient: client,
      dir: migrationsDir,
      direction: 'up',
      migrationsTable: 'schema_migrations',
      advisoryLockMode: 'wait',
      checkOrder: true,
      logger: silent,
    })
    return { applied: ran.map((migration) => migration.name) }
  } finally {
    await client.end()
  }
}
