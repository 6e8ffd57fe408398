import { createTestDatabase } from '@workflow-service/testkit'
import type { PoolClient } from 'pg'
import { createDatabase, type Database, type DatabaseOptions } from '../../src/client.ts'

/** A migrated database of a test's own, with a pool to it. */
export interface OpenDatabase {
  readonly url: string
  readonly db: Database
  /** Closes the pool and drops the database. */
  close(): Promise<void>
}

export async function openDatabase(
  options: Pick<DatabaseOptions, 'maxConnections' | 'statementTimeoutMs'> = {},
): Promise<OpenDatabase> {
  const { url, drop } = await createTestDatabase()
  const db = createDatabase({ url, applicationName: 'test', ...options })
  return {
    url,
    db,
    close: async () => {
      await db.close()
      await drop()
    },
  }
}

/** Has every statement run on this one connection, with the settings that it was given. */
export function onConnection(client: PoolClient): Pick<Database, 'pool'> {
  return { pool: client as unknown as Database['pool'] }
}
