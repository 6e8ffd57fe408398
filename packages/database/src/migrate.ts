import { fileURLToPath } from 'node:url'
import { Client } from 'pg'

const MIGRATIONS_FOLDER = fileURLToPath(new URL('../migrations', import.meta.url))

/**
 * Applies the migrations that the database does not have yet, and resolves to their names. An advisory lock makes
 * concurrent calls wait for each other. Needs no superuser and no extension, only the right to create tables: see
 * `checkServer`. Closes its connection before it settles.
 */
export async function migrate(options: { databaseUrl: string }): Promise<{ applied: string[] }> {
  // Imported here, because it takes 10 MiB of memory that a service does not need.
  const { runner } = await import('node-pg-migrate')
  const silent = { info: () => {}, warn: () => {}, error: () => {} }
  // A connection that the runner opens may still be closing when it resolves; its `error` event would crash the process
  // if the server stopped meanwhile.
  const client = new Client({ connectionString: options.databaseUrl, application_name: 'migrate' })
  client.on('error', () => {})
  await client.connect()
  try {
    const ran = await runner({
      dbClient: client,
      dir: MIGRATIONS_FOLDER,
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
