import { freePort } from '@workflow-service/testkit'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { expect, test } from '@jest/globals'
import { createDatabase, inTransaction, isDatabaseUnavailable, listenToChanges, migrate } from '../src/index.ts'

const database = useTestDatabase()

/** The URL of the test's database with a host before it that does not answer. */
async function withClosedHost(): Promise<string> {
  const { host } = new URL(database.url)
  return database.url.replace(host, `127.0.0.1:${await freePort()},${host}`)
}

test('of several hosts, pool, migration and listener connect to the one that answers', async () => {
  const url = await withClosedHost()
  expect(await migrate({ databaseUrl: url })).toEqual({ applied: [] })
  const db = createDatabase({ url, applicationName: 'test', maxConnections: 4 })
  await Promise.all([db.ping(), db.ping(), db.prisma.organization.count()])
  const up = Promise.withResolvers<string>()
  const listener = listenToChanges({
    url,
    applicationName: 'test',
    onNotice: () => {},
    onGap: () => {},
    onState: up.resolve,
  })
  expect(await up.promise).toBe('up')
  await listener.close()
  await db.close()
})

test('a host that accepts no writes is not used, as if it were down, and is used once it does', async () => {
  const name = new URL(database.url).pathname.slice(1)
  await database.db.pool.query(`ALTER DATABASE "${name}" SET default_transaction_read_only = on`)
  const db = createDatabase({ url: await withClosedHost(), applicationName: 'test', maxConnections: 2 })
  const error: unknown = await db.ping().catch((refused: unknown) => refused)
  expect(isDatabaseUnavailable(error)).toBe(true)
  await database.db.pool.query(`ALTER DATABASE "${name}" RESET default_transaction_read_only`)
  await db.ping()
  await db.close()
})

test('a server that refuses to connect is unavailable, to Prisma too', async () => {
  const url = new URL(database.url)
  url.password = 'an earlier one'
  const db = createDatabase({ url: url.href, applicationName: 'test', maxConnections: 2 })
  for (const read of [db.ping(), db.prisma.organization.count()]) {
    const error: unknown = await read.catch((refused: unknown) => refused)
    expect(isDatabaseUnavailable(error)).toBe(true)
  }
  await db.close()
})

test('a connection that the server closes between two statements fails only the transaction', async () => {
  const working = inTransaction(database.db, async (client) => {
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    const ended = new Promise((resolve) => client.once('end', resolve))
    await database.db.pool.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid])
    await ended
  })
  await expect(working).rejects.toThrow('not queryable')
  expect(await inTransaction(database.db, async (client) => (await client.query('SELECT 1 AS one')).rows)).toEqual([
    { one: 1 },
  ])
})
