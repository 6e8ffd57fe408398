import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { Database } from '../src/index.ts'
import { inTransaction } from '../src/in-transaction.ts'
import { type OpenDatabase, openDatabase } from './support/open-database.ts'

let db: Database
let opened: OpenDatabase
beforeAll(async () => {
  opened = await openDatabase()
  db = opened.db
})
afterAll(() => opened.close())

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
