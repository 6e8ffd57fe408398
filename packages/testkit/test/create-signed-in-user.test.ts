import { expect, test } from '@jest/globals'
import { findSignedInUser, newId } from '@workflow-service/database'
import { createSignedInUser } from '../src/index.ts'
import { useTestDatabase } from '../src/use-test-database.ts'

const database = useTestDatabase()

test('a signed-in user has a role in the organization, and a cookie that proves it', async () => {
  const { db } = database
  const organizationId = newId()
  await db.pool.query(`INSERT INTO organizations (id, name) VALUES ($1, 'Acme')`, [organizationId])
  const { userId, cookie } = await createSignedInUser(db.pool, organizationId, { role: 'member', name: 'Grace Hopper' })
  expect(await findSignedInUser(db, cookie.value)).toMatchObject({
    userId,
    organizationId,
    role: 'member',
    name: 'Grace Hopper',
  })
})
