import type { PoolClient } from 'pg'
import type { Db } from './client.ts'

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
    // After an error the connection is closed, which releases the lock.
    client.release(failure)
  }
}
