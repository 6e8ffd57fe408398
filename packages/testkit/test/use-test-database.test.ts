import { describe, expect, test } from '@jest/globals'
import { createDatabase } from '@workflow-service/database'
import { useTestDatabase } from '../src/use-test-database.ts'

let usedUrl: string

describe('a block that uses a test database', () => {
  const database = useTestDatabase()

  test('can query it', async () => {
    usedUrl = database.url
    const { rows } = await database.db.pool.query('SELECT count(*)::int AS organizations FROM organizations')
    expect(rows).toEqual([{ organizations: 0 }])
  })
})

test('the database is dropped after the last test of its block', async () => {
  const db = createDatabase({ url: usedUrl, applicationName: 'test' })
  await expect(db.ping()).rejects.toMatchObject({ code: '3D000' })
  await db.close()
})
