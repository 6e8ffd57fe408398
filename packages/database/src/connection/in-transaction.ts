import type { PoolClient } from 'pg'
import type { Db } from './client.ts'

/** Runs the work in one transaction on one connection: commits when it resolves, rolls back when it rejects. */
export async function inTransaction<Result>(db: Db, work: (client: PoolClient) => Promise<Result>): Promise<Result> {
  const client = await db.pool.connect()
  let rollbackError: Error | undefined
  // An unhandled `error` event (connection lost between two statements) would crash the process; the next query rejects
  // anyway.
  client.on('error', ignore)
  try {
    await client.query('BEGIN')
    const result = await work(client)
    await client.query('COMMIT')
    return result
  } catch (error) {
    await client.query('ROLLBACK').catch((failure: Error) => (rollbackError = failure))
    throw error
  } finally {
    // With an error, the pool closes the connection instead of using it again.
    client.release(rollbackError)
    client.off('error', ignore)
  }
}

/**
 * Runs `task` unless another process holds this lock, and resolves to whether it did. The lock is released when the
 * process dies.
 */
export async function withAdvisoryLock(
  db: Db,
  lock: number,
  task: (client: PoolClient) => Promise<void>,
): Promise<boolean> {
  const client = await db.pool.connect()
  client.on('error', ignore)
  let failure: Error | undefined
  try {
    const { rows } = await client.query<{ isLocked: boolean }>('SELECT pg_try_advisory_lock($1) AS "isLocked"', [lock])
    if (!rows[0]?.isLocked) return false
    try {
      await task(client)
      return true
    } finally {
      await client.query('SELECT pg_advisory_unlock($1)', [lock])
    }
  } catch (error) {
    failure = error as Error
    throw error
  } finally {
    client.off('error', ignore)
    // After an error the connection is closed, which releases the lock.
    client.release(failure)
  }
}

/** For an `error` event that the next statement reports as well. */
function ignore(): void {}
