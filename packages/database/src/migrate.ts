import { fileURLToPath } from 'node:url'

const migrationsDir = fileURLToPath(new URL('../migrations', import.meta.url))

/**
 * Brings the database to the newest schema: idempotent, and safe when several run at once, since each waits for the
 * advisory lock of the one before. Needs no superuser and no extension, but the right to create in the schema: see
 * checkServer.
 */
export async function migrate(options: { databaseUrl: string }): Promise<{ applied: string[] }> {
  // 10 MiB that only a process that migrates needs.
  const { runner } = await import('node-pg-migrate')
  const silent = { info: () => {}, warn: () => {}, error: () => {} }
  const ran = await runner({
    databaseUrl: options.databaseUrl,
    dir: migrationsDir,
    direction: 'up',
    migrationsTable: 'schema_migrations',
    advisoryLockMode: 'wait',
    checkOrder: true,
    logger: silent,
  })
  return { applied: ran.map((migration) => migration.name) }
}
