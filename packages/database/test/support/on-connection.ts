import type { PoolClient } from 'pg'
import type { Database } from '../../src/connection/client.ts'

/** A database whose statements all run on this connection. */
export function onConnection(client: PoolClient): Pick<Database, 'pool'> {
  return { pool: client as unknown as Database['pool'] }
}
