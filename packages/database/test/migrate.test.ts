import { connect, createServer } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { beginTransaction, createTestDatabase, listen, type TestDatabase, untilLocked } from '@workflow-service/testkit'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { Client } from 'pg'
import { createDatabase, migrate } from '../src/index.ts'

const database = useTestDatabase()

test('applies nothing to an up-to-date database', async () => {
  expect(await migrate({ databaseUrl: database.url })).toEqual({ applied: [] })
})

test('makes the tables in "public", also beside a schema that is named like the role', async () => {
  const { url, drop } = await createTestDatabase()
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE SCHEMA AUTHORIZATION CURRENT_ROLE')
  await migrate({ databaseUrl: url })
  const { rows } = await client.query(`SELECT to_regclass('public.organizations')::text AS "table"`)
  expect(rows).toEqual([{ table: 'organizations' }])
  await client.end()
  await drop()
})

test('has closed its connection when it resolves', async () => {
  const url = new URL(database.url)
  const { port, hostname } = url
  let [opened, open] = [0, 0]
  const proxy = createServer((socket) => {
    opened++
    open++
    const server = connect(Number(port), hostname)
    socket.pipe(server).pipe(socket)
    socket.on('end', () => open--)
    for (const each of [socket, server]) each.on('error', () => {})
  })
  url.host = `127.0.0.1:${await listen(proxy)}`
  await migrate({ databaseUrl: url.href })
  // With a second one if it took long: see `observeBlockers`.
  expect(opened).toBeGreaterThan(0)
  expect(open).toBe(0)
  proxy.close()
})

/**
 * The first message that names the connection, and the number of its attempt. A migration knows no name if it could not
 * look in time, such as on a busy machine.
 */
function firstWithName(messages: readonly string[]): { message: string | undefined; attempt: number } {
  const index = messages.findIndex((message) => NAMED.test(message))
  return { message: messages[index], attempt: index + 1 }
}
const NAMED = /process \d+ \(/

describe('while another connection holds a lock', () => {
  let reader: Client
  let urlOfOutdated: string
  let outdated: TestDatabase

  /** A database without its last migration, and a reader of the table that this migration changes. */
  beforeEach(async () => {
    outdated = await createTestDatabase()
    urlOfOutdated = outdated.url
    reader = new Client({ connectionString: urlOfOutdated, application_name: 'long reader' })
    await reader.connect()
    await reader.query("DELETE FROM schema_migrations WHERE name >= '006'")
    await reader.query('BEGIN')
    await reader.query('SELECT count(*) FROM workflows')
  })
  afterEach(async () => {
    await reader.end()
    await outdated.drop()
  })

  test('gives up its place in the queue for the lock, and is tried again', async () => {
    const messages: string[] = []
    const migrating = migrate({
      databaseUrl: urlOfOutdated,
      lockTimeoutMs: 1_000,
      firstRetryMs: 1,
      onRetry: (message) => {
        messages.push(message)
        if (messages.length >= 2 && NAMED.test(message)) void reader.query('ROLLBACK')
      },
    })
    // The table has what the migration adds: it fails, but not because of the lock.
    await expect(migrating).rejects.toMatchObject({ code: expect.stringMatching(/^42/) })
    expect(messages.length).toBeGreaterThanOrEqual(2)
    const { message, attempt } = firstWithName(messages)
    expect(message).toMatch(
      new RegExp(
        String.raw`^The migration waits for a lock on workflows that is held by process \d+ \(long reader, idle in transaction since .+Z\): SELECT count\(\*\) FROM workflows; attempt ${attempt + 1} of 10 follows\.$`,
      ),
    )
  })

  test('rejects after the last attempt, and names the connection', async () => {
    const migrating = migrate({ databaseUrl: urlOfOutdated, lockTimeoutMs: 1_000, maxAttempts: 1 })
    await expect(migrating).rejects.toThrow(/process \d+ \(long reader, .+ End that connection or its transaction/)
  })

  test('is ended by no time limit of the database', async () => {
    const name = new URL(urlOfOutdated).pathname.slice(1)
    for (const limit of ['statement', 'transaction', 'idle_in_transaction_session', 'idle_session']) {
      await database.db.pool.query(`ALTER DATABASE "${name}" SET ${limit}_timeout = 200`)
    }
    const migrating = migrate({ databaseUrl: urlOfOutdated, lockTimeoutMs: 1_000, maxAttempts: 1 })
    await expect(migrating).rejects.toThrow('End that connection or its transaction')
  })
})

test('is tried again after a deadlock with a transaction that locks the tables in another order', async () => {
  const outdated = await createTestDatabase()
  const db = createDatabase({ url: outdated.url, applicationName: 'test' })
  // Its migration drops it, which locks both tables.
  await db.pool.query(`ALTER TABLE idempotency_keys ADD CONSTRAINT idempotency_keys_start_id_fkey
    FOREIGN KEY (start_id) REFERENCES starts ON DELETE CASCADE`)
  await db.pool.query("DELETE FROM schema_migrations WHERE name >= '103'")
  const other = await beginTransaction(db.pool)
  await other.query('SELECT FROM starts')
  // Later migrations may fail: the database has what they add.
  const migrating = migrate({ databaseUrl: outdated.url, firstRetryMs: 1 }).catch((error: unknown) => error)
  await untilLocked(db.pool)
  // On a slow machine, PostgreSQL may end this one in place of the migration.
  await other.query('SELECT FROM idempotency_keys').catch(() => {})
  await other.query('ROLLBACK')
  other.release()
  expect(await migrating).not.toMatchObject({ code: '40P01' })
  const { rowCount } = await db.pool.query("SELECT FROM schema_migrations WHERE name LIKE '103%'")
  expect(rowCount).toBe(1)
  await db.close()
  await outdated.drop()
})

test('waits for another migration however long it takes, and says so', async () => {
  const other = new Client({ connectionString: database.url, application_name: 'migrate' })
  await other.connect()
  await other.query(`SELECT pg_advisory_lock(7241865325823964)`)
  const messages: string[] = []
  const { applied } = await migrate({
    databaseUrl: database.url,
    lockTimeoutMs: 1_000,
    firstRetryMs: 1,
    maxAttempts: 1,
    onRetry: (message) => {
      messages.push(message)
      if (NAMED.test(message)) void other.end()
    },
  })
  expect(applied).toEqual([])
  const { message, attempt } = firstWithName(messages)
  expect(message).toMatch(/^The migration waits for another migration: process \d+ \(migrate, idle since .+ follows\.$/)
  expect(message).toContain(`attempt ${attempt + 1} follows`)
})

test('rejects with the reason when it cannot connect', async () => {
  const url = new URL(database.url)
  url.password = 'wrong'
  await expect(migrate({ databaseUrl: url.href })).rejects.toMatchObject({ code: '28P01' })
  url.port = '1'
  await expect(migrate({ databaseUrl: url.href })).rejects.toMatchObject({ code: 'ECONNREFUSED' })
})
