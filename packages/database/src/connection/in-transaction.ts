import type { PoolClient } from 'pg'
import type { Db } from './client.ts'
import { isReadOnly, isUnanswered } from './database-unavailable.ts'

/** Runs the work in one transaction on one connection: commits when it resolves, rolls back when it rejects. */
export async function inTransaction<Result>(db: Db, work: (client: PoolClient) => Promise<Result>): Promise<Result> {
  const client = await db.pool.connect()
  let closedFor: Error | undefined
  try {
    await client.query('BEGIN')
    const result = await work(client)
    await client.query('COMMIT')
    return result
  } catch (error) {
    // A ROLLBACK would wait behind the statement, as long again. PostgreSQL rolls back when the connection is closed.
    if (isUnanswered(error) || isReadOnly(error)) closedFor = error
    else await client.query('ROLLBACK').catch((failure: Error) => (closedFor = failure))
    throw error
  } finally {
    // With an error, the pool closes the connection instead of using it again.
    client.release(closedFor)
  }
}
