import { readFileSync } from 'node:fs'
import { beforeAll, expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { createUser, deleteUser, listDuplicateUsers, newId, operatorOf } from '../src/index.ts'

const database = useTestDatabase()
const organizationId = newId()
const [first, second, third] = [newId(), newId(), newId()]

const migration = readFileSync(new URL('../migrations/014_people.sql', import.meta.url), 'utf8')
/** What the migration adds, so that it can be applied to rows as earlier releases wrote them. */
const UNDO = `
  DROP INDEX users_email;
  ALTER TABLE users DROP COLUMN signed_out_at, DROP COLUMN is_duplicate;
  ALTER TABLE one_time_links DROP CONSTRAINT one_time_links_new_email, DROP COLUMN new_email;`

beforeAll(async () => {
  const { pool } = database.db
  await pool.query(UNDO)
  await pool.query(`INSERT INTO organizations (id, name) VALUES ($1, 'Acme')`, [organizationId])
  const rows = [
    [first, 'ada@acme.test', null],
    [second, 'Ada@acme.test', 'member'],
    [third, 'ADA@acme.test', null],
    [newId(), 'bob@acme.test', null],
  ]
  for (const [id, email, role] of rows) {
    await pool.query('INSERT INTO users (id, organization_id, email, role) VALUES ($1, $2, $3, $4)', [
      id,
      organizationId,
      email,
      role,
    ])
  }
  await pool.query(
    `INSERT INTO one_time_links (token_sha256, kind, role, expires_at)
     VALUES (sha256('a'), 'setup', 'owner', now() + interval '1 hour')`,
  )
  await pool.query(migration)
})

const add = (email: string) =>
  createUser(database.db, { id: newId(), email, first_name: '', last_name: '', role: null }, operatorOf(organizationId))
const remove = (id: string) => deleteUser(database.db, id, () => {}, operatorOf(organizationId))
const duplicates = async () => (await listDuplicateUsers(database.db)).map(({ email }) => email)

test('Users whose addresses differ in case only survive the migration, and whoever can sign in keeps the address', async () => {
  expect(await duplicates()).toEqual(['ADA@acme.test', 'ada@acme.test'])
  expect(await add('aDa@acme.test')).toBe('email_taken')
})

test('After one of them is removed, the address is still taken', async () => {
  await remove(second)
  expect(await duplicates()).toEqual(['ADA@acme.test'])
  expect(await add('aDa@acme.test')).toBe('email_taken')
  await remove(third)
  expect(await duplicates()).toEqual([])
  expect(await add('aDa@acme.test')).toBe('email_taken')
  await remove(first)
  expect(await add('aDa@acme.test')).toMatchObject({ email: 'aDa@acme.test' })
})

test('The migration ends the setup links that earlier releases may have logged', async () => {
  const { rows } = await database.db.pool.query('SELECT FROM one_time_links WHERE revoked_at IS NULL')
  expect(rows).toEqual([])
})
