import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createTestDatabase, type TestDatabase } from '@workflow-service/testkit'
import { Client } from 'pg'

async function query(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(statement)).rows
  } finally {
    await client.end()
  }
}

describe('createTestDatabase', () => {
  let databases: TestDatabase[] = []

  beforeAll(async () => {
    databases = await Promise.all([1, 2, 3, 4].map(createTestDatabase))
  })

  afterAll(async () => {
    await Promise.all(databases.map(async (database) => await database.drop()))
  })

  test('creates separate databases, also at the same time', async () => {
    const [first, second] = databases as [TestDatabase, TestDatabase]
    await query(first.url, 'CREATE TABLE mark (id int)')
    expect(await query(second.url, `SELECT to_regclass('mark') AS mark`)).toEqual([{ mark: null }])
    expect(new Set(databases.map(({ url }) => url)).size).toBe(4)
  })

  test('creates them migrated', async () => {
    const [{ url }] = databases as [TestDatabase]
    expect(await query(url, 'SELECT count(*) > 0 AS migrated FROM schema_migrations')).toEqual([{ migrated: true }])
  })

  test('connects as a role that is no superuser', async () => {
    const [{ url }] = databases as [TestDatabase]
    expect(await query(url, 'SHOW is_superuser')).toEqual([{ is_superuser: 'off' }])
  })

  test('drops a database that has connections', async () => {
    const { url, drop } = await createTestDatabase()
    const client = new Client({ connectionString: url })
    client.on('error', () => {})
    await client.connect()
    await drop()
    await expect(query(url, 'SELECT 1')).rejects.toMatchObject({ code: '3D000' })
    await client.end()
  })
})
