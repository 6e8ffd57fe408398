import type { Pool } from 'pg'

/** Begins a transaction on a connection of its own, which is closed at the end of the scope. */
export async function beginTransaction(pool: Pick<Pool, 'connect'>) {
  const client = await pool.connect()
  await client.query('BEGIN')
  return Object.assign(client, { [Symbol.dispose]: () => client.release(true) })
}
