import { startPostgres } from '@workflow-service/dev-servers'

/** The PostgreSQL of this Jest run, as its test files use it. */
export interface DatabaseServer {
  /** May create databases. */
  adminUrl: string
  /** A migrated database to clone, as its owner, who is no superuser. */
  templateUrl: string
}

/** Starts a PostgreSQL with a migrated database. */
export async function startDatabaseServer(): Promise<DatabaseServer & { stop: () => Promise<void> }> {
  const { adminUrl, url, stop } = await startPostgres()
  // Imported here, because it loads Prisma, which a run of unit tests does not need.
  const { migrate } = await import('@workflow-service/database')
  await migrate({ databaseUrl: url })
  return { adminUrl, templateUrl: url, stop }
}
