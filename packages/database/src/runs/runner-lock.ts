import { escapeLiteral } from 'pg'
import { type Database, type Db, liftTimeLimits } from '../connection/index.ts'

/** The lock of the runner that this expression of SQL names. */
const lockOf = (owner: string): string => `hashtextextended('runner ' || ${owner}, 0)`

/**
 * Locks the runner's name until the signal aborts or the connection is lost, then resolves or rejects. PostgreSQL frees
 * the lock when the process ends, however it ends, and keeps it while the process is paused or busy.
 *
 * It is a lock of a transaction that stays open, on a connection of its own: PgBouncer in transaction mode gives each
 * transaction one connection to PostgreSQL, and closes that when the client is gone. The transaction has read no table
 * and keeps no snapshot, so it holds back neither vacuum nor a migration.
 */
export async function holdRunnerLock(
  db: Pick<Database, 'pool' | 'createClient'>,
  owner: string,
  signal: AbortSignal,
): Promise<void> {
  const client = db.createClient()
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>()
  client.on('error', reject)
  client.on('end', resolve)
  signal.addEventListener('abort', () => resolve(), { once: true })
  // Also handled while nothing waits for it yet.
  ended.catch(() => {})
  try {
    await client.connect()
    await client.query('BEGIN')
    await liftTimeLimits(client, 'transaction')
    // Without parameters: with them, the statement's portal stays open, and keeps its snapshot.
    await client.query(`SELECT pg_advisory_xact_lock(${lockOf(escapeLiteral(owner))})`)
    // After the lock: a row without it means a runner that has ended.
    if (!signal.aborted) await db.pool.query('INSERT INTO runners (owner) VALUES ($1) ON CONFLICT DO NOTHING', [owner])
    await ended
  } finally {
    await client.end().catch(() => {})
  }
}

/** Lists the runners whose lock is free: their process has ended, or has lost its connection. */
export async function listUnlockedRunners(db: Db): Promise<string[]> {
  // The lock is shared, so that runners that ask at the same time do not hide a free one from each other.
  const { rows } = await db.pool.query<{ owner: string }>({
    name: 'list-unlocked-runners',
    text: `SELECT owner FROM runners WHERE pg_try_advisory_xact_lock_shared(${lockOf('owner')})`,
  })
  return rows.map(({ owner }) => owner)
}

/** Removes runners that have no lease any more. */
export async function forgetRunners(db: Db, owners: readonly string[]): Promise<void> {
  await db.pool.query('DELETE FROM runners WHERE owner = ANY ($1)', [owners])
}
