import { beforeAll, expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import type { Database } from '../src/index.ts'
import { inTransaction } from '../src/connection/in-transaction.ts'

const database = useTestDatabase()
let db: Database
beforeAll(async () => {
  db = database.db
})

test('a connection that the server closes between two statements fails only the transaction', async () => {
  const working = inTransaction(db, async (client) => {
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    const ended = new Promise((resolve) => client.once('end', resolve))
    await db.pool.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid])
    await ended
  })
  await expect(working).rejects.toThrow('not queryable')
  expect(await inTransaction(db, async (client) => (await client.query('SELECT 1 AS one')).rows)).toEqual([{ one: 1 }])
})
