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

// As the migrations leave rows of earlier releases: the one who can sign in keeps the address.
beforeAll(async () => {
  const { prisma } = database.db
  await prisma.organization.create({ data: { id: organizationId, name: 'Acme' } })
  const users = [
    { id: first, email: 'ada@acme.test', isDuplicate: true },
    { id: second, email: 'Ada@acme.test' },
    { id: third, email: 'ADA@acme.test', isDuplicate: true },
  ]
  await prisma.user.createMany({ data: users.map((user) => ({ ...user, organizationId })) })
})

const add = (email: string) =>
  createUser(database.db, { id: newId(), email, first_name: '', last_name: '', role: null }, operatorOf(organizationId))
const remove = (id: string) => deleteUser(database.db, id, () => {}, operatorOf(organizationId))
const duplicates = async () => (await listDuplicateUsers(database.db)).map(({ email }) => email)

test('Of users whose addresses differ in case only, the next one keeps the address when one is removed', async () => {
  expect(await duplicates()).toEqual(['ADA@acme.test', 'ada@acme.test'])
  await remove(second)
  expect(await duplicates()).toEqual(['ADA@acme.test'])
  expect(await add('aDa@acme.test')).toBe('email_taken')
  await remove(third)
  expect(await duplicates()).toEqual([])
  expect(await add('aDa@acme.test')).toBe('email_taken')
  await remove(first)
  expect(await add('aDa@acme.test')).toMatchObject({ email: 'aDa@acme.test' })
})

/** Adds a user as a service of the previous release does, also during an upgrade. */
const insert = async (email: string, role: string | null) =>
  (await database.db.prisma.user.create({ data: { id: newId(), organizationId, email, role } })).id
const keyOf = async (id: string) => (await database.db.prisma.user.findFirstOrThrow({ where: { id } })).emailKey

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
