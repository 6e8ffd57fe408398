import type { PoolClient } from 'pg'
import type { Database } from './client.ts'

/** Runs the work in one transaction on one connection: commits what it did, or, when it rejects, nothing. */
export async function inTransaction<Result>(
  db: Pick<Database, 'pool'>,
  work: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await db.pool.connect()
  let broken: Error | undefined
  // Said where a connection breaks between two statements: the next one fails. Unheard, it would end the process.
  client.on('error', ignore)
  try {
    await client.query('BEGIN')
    const result = await work(client)
    await client.query('COMMIT')
    return result
  } catch (error) {
    await client.query('ROLLBACK').catch((fault: Error) => (broken = fault))
    throw error
  } finally {
    // A connection that could not even roll back is not handed to anybody else.
    client.release(broken)
    client.off('error', ignore)
  }
}

function ignore(): void {}
