import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import {
  createUser,
  deleteUser,
  findUserByEmail,
  foldEmails,
  listDuplicateUsers,
  newId,
  operatorOf,
} from '../src/index.ts'

const database = useTestDatabase()
const organizationId = newId()
const [first, second, third] = [newId(), newId(), newId()]

const migrations = ['014_people', '019_folded_emails'].map((name) =>
  readFileSync(new URL(`../migrations/${name}.sql`, import.meta.url), 'utf8'),
)
/** What the migrations add, so that they can be applied to rows as earlier releases wrote them. */
const UNDO = `
  DROP INDEX users_email, users_email_key, users_folded_email;
  ALTER TABLE users DROP COLUMN signed_out_at, DROP COLUMN is_duplicate, DROP COLUMN email_key;
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
  for (const migration of migrations) await pool.query(migration)
})

const add = (email: string) =>
  createUser(database.db, { id: newId(), email, first_name: '', last_name: '', role: null }, operatorOf(organizationId))
const remove = (id: string) => deleteUser(database.db, id, () => {}, operatorOf(organizationId))
const duplicates = async () => (await listDuplicateUsers(database.db)).map(({ email }) => email)

test('Users whose addresses differ in case only survive the migration, and the one who can sign in keeps the address', async () => {
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

/** Adds a user as a service of the previous release does, also during an upgrade. */
async function insert(email: string, role: string | null = null): Promise<string> {
  const id = newId()
  const values = [id, organizationId, email, role]
  await database.db.pool.query('INSERT INTO users (id, organization_id, email, role) VALUES ($1, $2, $3, $4)', values)
  return id
}

async function keyOf(id: string): Promise<string | null | undefined> {
  const { rows } = await database.db.pool.query<{ key: string | null }>(
    'SELECT email_key AS key FROM users WHERE id = $1',
    [id],
  )
  return rows[0]?.key
}

describe('Addresses with letters beyond ASCII', () => {
  test.each([
    ['ärger@acme.test', 'ÄRGER@acme.test'],
    ['straße@acme.test', 'STRASSE@acme.test'],
    ['\u212Aelvin@acme.test', 'kelvin@acme.test'],
  ])('%s and %s are the same', async (one, other) => {
    expect(await add(one)).toMatchObject({ email: one })
    expect(await add(other)).toBe('email_taken')
    expect(await findUserByEmail(database.db, organizationId, other)).toMatchObject({ email: one })
  })

  test('of rows without a folded address get it, and of two that are the same then, one becomes a duplicate', async () => {
    const emails = ['ÉÖ@acme.test', 'éÖ@acme.test', 'éö@acme.test', 'Ü@acme.test']
    const [, folded, plain, alone] = await Promise.all(
      emails.map((email, index) => insert(email, index === 1 ? 'member' : null)),
    )
    expect(await foldEmails(database.db)).toBe(3)
    expect([await keyOf(folded!), await keyOf(plain!), await keyOf(alone!)]).toEqual([
      'éö@acme.test',
      null,
      'ü@acme.test',
    ])
    expect(await duplicates()).toEqual(['ÉÖ@acme.test', 'éÖ@acme.test'])
    expect(await foldEmails(database.db)).toBe(0)
    expect(await add('Éö@acme.test')).toBe('email_taken')
    await remove(plain!)
    expect(await duplicates()).toHaveLength(1)
  })

  test('and a folded address does not outlive the address', async () => {
    const { id } = (await add('Élan@acme.test')) as { id: string }
    expect(await keyOf(id)).toBe('élan@acme.test')
    await database.db.pool.query(`UPDATE users SET email = 'plain@acme.test' WHERE id = $1`, [id])
    await foldEmails(database.db)
    expect(await keyOf(id)).toBeNull()
    expect(await add('PLAIN@acme.test')).toBe('email_taken')
  })
})
