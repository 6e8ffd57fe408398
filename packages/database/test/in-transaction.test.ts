import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createTestDatabase, type TestDatabase } from '@workflow-service/testkit'
import { createDatabase, type Database } from '../src/index.ts'
import { inTransaction } from '../src/in-transaction.ts'

let database: TestDatabase
let db: Database
beforeAll(async () => {
  database = await createTestDatabase()
  db = createDatabase({ url: database.url, applicationName: 'test' })
})
afterAll(async () => {
  await db.close()
  await database.drop()
})

test('a connection that the server ends between two statements fails the transaction, and nothing else', async () => {
  const working = inTransaction(db, async (client) => {
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    const ended = new Promise((resolve) => client.once('end', resolve))
    await db.pool.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid])
    await ended
  })
  await expect(working).rejects.toThrow('not queryable')
  expect(await inTransaction(db, async (client) => (await client.query('SELECT 1 AS one')).rows)).toEqual([{ one: 1 }])
})
