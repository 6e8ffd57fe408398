import { argon2Sync } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import {
  acceptInvitation,
  acceptReset,
  createUserLink,
  findOneTimeLink,
  newId,
  operatorOf,
  signIn as signInWith,
} from '@workflow-service/database'
import { untilLocked } from '@workflow-service/testkit'
import { NEW_PASSWORD, PASSWORD, usePeople } from './support/people.ts'
import { type TestOrganization, type TestPerson, useTestApp } from './support/test-app.ts'

const app = useTestApp()
const people = usePeople(app)
const { accept, askForLink, invite, isOpen, linkFor, saveUser, withPassword } = people

const VISITOR = { principal: { address: '192.0.2.1', userAgent: 'test' }, requestId: 'r' }
const allow = (): void => {}

const twoOrganizations = async () => [await app.createOrganization(), await app.createOrganization()] as const

/** Returns a person of two organizations with a password. */
async function personOfTwo() {
  const [a, b] = await twoOrganizations()
  const person = await withPassword(a.id)
  return { a, b, person, userOfB: await join(person, b) }
}

/** Adds the person's account to the organization. */
async function join(person: TestPerson, organization: TestOrganization, role = 'member'): Promise<string> {
  const answer = await accept(await invite(organization, role, person.email))
  if (answer.status !== 200) throw new Error(answer.text)
  return answer.body.user_id
}

async function operatorsLink(person: TestPerson, link: Parameters<typeof createUserLink>[2]): Promise<string> {
  const made = await createUserLink(app.db, person.userId, link, allow, operatorOf(person.organizationId))
  return (made as { token: string }).token
}

const emailsOf = async ({ accountId }: TestPerson) =>
  (
    await app.db.pool.query(
      `SELECT a.email, array_agg(DISTINCT u.email) AS users FROM accounts a JOIN users u ON u.account_id = a.id
       WHERE a.id = $1 GROUP BY a.email`,
      [accountId],
    )
  ).rows[0] as { email: string; users: string[] }

const switchTo = (token: string, organizationId: string) =>
  app.call(token, 'switchOrganization', { body: { organization_id: organizationId } })

describe('A reset link', () => {
  test('of an admin ends when the person joins another organization', async () => {
    const [a, b] = await twoOrganizations()
    const person = await withPassword(a.id)
    const token = await linkFor(a.admin, person.userId, { kind: 'reset' })
    await join(person, b, 'owner')
    expect(await isOpen(token)).toBe(false)
    expect((await accept(token, NEW_PASSWORD)).error.code).toBe('link_not_usable')
    expect(await people.signIn(person.email)).toBeDefined()
  })

  test('is checked again when it is used: the person belongs to another organization, or the maker is no admin any more', async () => {
    const [a, b] = await twoOrganizations()
    const person = await withPassword(a.id)
    const first = await linkFor(a.admin, person.userId, { kind: 'reset' })
    const moved = await app.createPerson(b.id, 'member')
    await app.db.pool.query('UPDATE users SET account_id = $2 WHERE id = $1', [moved.userId, person.accountId])
    expect((await accept(first, NEW_PASSWORD)).error.code).toBe('link_not_usable')
    await app.db.pool.query('UPDATE users SET account_id = NULL WHERE id = $1', [moved.userId])
    const second = await linkFor(a.admin, person.userId, { kind: 'reset' })
    await saveUser(a.owner, a.admin.userId, { role: 'member' })
    expect((await accept(second, NEW_PASSWORD)).error.code).toBe('link_not_usable')
    const third = await linkFor(a.owner, person.userId, { kind: 'reset' })
    expect((await accept(third, NEW_PASSWORD)).status).toBe(200)
  })

  test('of a person of several organizations is made by the operator only, and is in the audit log of each', async () => {
    const { a, b, person, userOfB } = await personOfTwo()
    for (const [{ owner }, userId] of [
      [a, person.userId],
      [b, userOfB],
    ] as const) {
      expect((await askForLink(owner, userId, { kind: 'reset' })).error.code).toBe('link_not_usable')
    }
    const token = await operatorsLink(person, { kind: 'reset' })
    expect((await accept(token, NEW_PASSWORD)).status).toBe(200)
    for (const organization of [a, b]) {
      expect(await people.actionsIn(organization, person.accountId)).toContain('account.password_changed')
      expect(await people.actionsIn(organization, person.userId)).toContain('user.link_created')
    }
  })

  test.each([
    ['a role', { role: 'admin' }],
    ['a deactivation', { is_deactivated: true }],
  ])('ends with %s in any organization of the person', async (_case, change) => {
    const { b, person, userOfB } = await personOfTwo()
    const token = await operatorsLink(person, { kind: 'reset' })
    expect(await isOpen(token)).toBe(true)
    await saveUser(b.owner, userOfB, change)
    expect(await isOpen(token)).toBe(false)
  })

  test('and an invitation that are used at once never give the admin a person of both organizations', async () => {
    for (let round = 0; round < 5; round += 1) {
      const [a, b] = await twoOrganizations()
      const person = await withPassword(a.id)
      const [reset, invitation] = [
        await linkFor(a.admin, person.userId, { kind: 'reset' }),
        await invite(b, 'owner', person.email),
      ]
      const links = await Promise.all([reset, invitation].map((token) => findOneTimeLink(app.db, token)))
      const { accountId } = person
      const { passwordHash } = await app.db.prisma.account.findUniqueOrThrow({ where: { id: accountId } })
      // The person's password was checked before both: only the transactions decide.
      const checked = { accountId, passwordHash: passwordHash! }
      const [byAdmin, joined] = await Promise.all([
        acceptReset(app.db, reset, links[0]!, 'of the admin', VISITOR),
        acceptInvitation(app.db, invitation, links[1]!, checked, VISITOR),
      ])
      const ended = [byAdmin ? 'reset' : 'no reset', typeof joined === 'object' ? 'joined' : joined]
      expect([
        ['reset', 'password_changed'],
        ['no reset', 'joined'],
      ]).toContainEqual(ended)
    }
  })
})

test('A password that an earlier release has hashed signs the person in, and is hashed again', async () => {
  const { accountId, email } = await withPassword(app.organization.id)
  const [memory, nonce] = [47_104, Buffer.alloc(16, 7)]
  const tag = argon2Sync('argon2id', { message: PASSWORD, nonce, parallelism: 1, tagLength: 32, memory, passes: 1 })
  const [salt, hash] = [nonce, tag].map((bytes) => bytes.toString('base64').replace(/=+$/, ''))
  const passwordHash = `$argon2id$v=19$m=${memory},t=1,p=1$${salt}$${hash}`
  await app.db.prisma.account.update({ where: { id: accountId }, data: { passwordHash } })
  expect(await people.signIn(email, NEW_PASSWORD)).toBeUndefined()
  // Each of two at once: both check the earlier hash, and one replaces it. More may wait too long for their turns.
  const signedIn = await Promise.all([people.signIn(email), people.signIn(email)])
  expect(signedIn).not.toContain(undefined)
  const account = await app.db.prisma.account.findUniqueOrThrow({ where: { id: accountId } })
  expect(account.passwordHash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  expect(await people.signIn(email)).toBeDefined()
})

describe('A password that was replaced', () => {
  test('signs no person in, even if it was checked before', async () => {
    const person = await withPassword(app.organization.id)
    const account = { id: person.accountId, name: 'Ada', passwordHash: 'checked before it was replaced' }
    const membership = { id: app.organization.id, userId: person.userId }
    expect(await signInWith(app.db, account, membership, 'password', VISITOR)).toBeUndefined()
  })

  test('is not replaced again by a sign-in that the reset has ended', async () => {
    const { id, admin } = await app.createOrganization()
    const person = await withPassword(id)
    const reset = await linkFor(admin, person.userId, { kind: 'reset' })
    // The reset holds the lock of the account when the change begins.
    const holder = await app.db.pool.connect()
    await holder.query('BEGIN')
    await holder.query('SELECT FROM accounts WHERE id = $1 FOR UPDATE', [person.accountId])
    const change = app.call(person, 'changePassword', { body: { new_password: PASSWORD } })
    await untilLocked(app.db.pool)
    await holder.query('DELETE FROM sign_ins WHERE account_id = $1', [person.accountId])
    await holder.query('COMMIT')
    holder.release()
    expect((await change).error.code).toBe('unauthorized')
    expect((await accept(reset, NEW_PASSWORD)).status).toBe(200)
  })
})

describe('A sign-in in another organization', () => {
  test.each([
    ['"sign out everywhere"', null, 401, 'member'],
    ['another role', { role: 'admin' }, 401, 'admin'],
    ['a deactivation', { is_deactivated: true }, 404, undefined],
  ])('does not come back after %s', async (_case, change, status, role) => {
    const { a, b, person } = await personOfTwo()
    const token = (await people.signIn(person.email))!
    expect((await switchTo(token, b.id)).body.organization.id).toBe(b.id)
    if (change) await saveUser(a.owner, person.userId, change)
    else await app.call(a.admin, 'signUserOut', { params: { user_id: person.userId } })
    expect((await switchTo(token, a.id)).status).toBe(status)
    // It stays signed in where it was, and a new one works.
    expect((await app.call(token, 'getMe')).body.organization.id).toBe(b.id)
    const again = await switchTo((await people.signIn(person.email))!, a.id)
    expect(again.body.role).toBe(role)
  })

  test('that is switched at the same moment is ended too', async () => {
    for (let round = 0; round < 5; round += 1) {
      const [a, b] = await twoOrganizations()
      const person = await app.createPerson(a.id, 'member')
      const other = await app.createPerson(b.id, 'member')
      await app.db.pool.query('UPDATE users SET account_id = $2 WHERE id = $1', [other.userId, person.accountId])
      await Promise.all([
        switchTo(person.token, b.id),
        app.call(a.admin, 'signUserOut', { params: { user_id: person.userId } }),
        switchTo(person.token, b.id),
      ])
      const back = await switchTo(person.token, a.id)
      expect(back.error.code).toBe('unauthorized')
      const { body } = await app.call(person.token, 'getMe')
      expect([undefined, b.id]).toContain(body?.organization?.id)
    }
  })

  test('is in the audit log of the organization that the person enters', async () => {
    const { b, person } = await personOfTwo()
    const before = (await people.actionsIn(b, person.accountId)).length
    await switchTo((await people.signIn(person.email))!, b.id)
    const { body } = await app.call(b.owner, 'listAuditEvents', { query: { target_id: person.accountId } })
    expect(body.data.length).toBeGreaterThan(before)
    expect(body.data[0]).toMatchObject({ action: 'account.signed_in', changes: [{ field: 'method', new: 'switch' }] })
  })
})

const newEmail = () => `${newId()}@proven.test`

describe('An email address', () => {
  test('is not changed by the person alone, and the refusal says nothing of other accounts', async () => {
    const person = await withPassword(app.organization.id)
    const taken = (await withPassword((await app.createOrganization()).id)).email
    const answers = await Promise.all(
      [taken, newEmail()].map((email) => app.call(person, 'saveMe', { body: { name: 'Ada', email } })),
    )
    for (const { error } of answers) {
      expect({ ...error, request_id: '' }).toEqual({ ...answers[0]!.error, request_id: '' })
      expect(error.details).toMatchObject([{ field: 'email', code: 'value_error' }])
    }
    expect((await app.call(person, 'saveMe', { body: { name: 'Ada' } })).body.account.name).toBe('Ada')
    const same = person.email.toUpperCase()
    expect((await app.call(person, 'saveMe', { body: { name: 'Bo', email: same } })).status).toBe(200)
    expect((await emailsOf(person)).email).toBe(person.email)
  })

  test('is changed with a link of an admin and the password, in every organization', async () => {
    const a = await app.createOrganization()
    const person = await withPassword(a.id)
    const email = newEmail()
    const token = await linkFor(a.admin, person.userId, { kind: 'email', email })
    expect((await app.call(null, 'openLink', { body: { token } })).body).toMatchObject({ kind: 'email', email })
    expect((await accept(token, NEW_PASSWORD)).error.code).toBe('sign_in_failed')
    expect((await emailsOf(person)).email).toBe(person.email)
    expect((await accept(token)).body.account.email).toBe(email)
    expect(await emailsOf(person)).toEqual({ email, users: [email] })
    expect([await people.signIn(person.email), await people.signIn(email)]).toEqual([undefined, expect.any(String)])
    expect((await accept(token)).error.code).toBe('link_not_usable')
    const { body } = await app.call(a.owner, 'listAuditEvents', { query: { action: 'account.saved' } })
    expect(body.data[0]?.changes).toEqual([{ field: 'email', old: person.email, new: email }])
  })

  test('of a person of several organizations needs an admin of each, when the link is made and when it is used', async () => {
    const { a, b, person } = await personOfTwo()
    const admin = await withPassword(a.id, 'admin')
    const email = newEmail()
    const asked = [admin, person.userId, { kind: 'email', email }] as const
    expect((await askForLink(...asked)).error.code).toBe('link_not_usable')
    const adminOfB = await join(admin, b, 'admin')
    const token = await linkFor(...asked)
    await saveUser(b.owner, adminOfB, { role: 'member' })
    expect((await accept(token)).error.code).toBe('link_not_usable')
    await saveUser(b.owner, adminOfB, { role: 'admin' })
    expect((await accept(await linkFor(...asked))).status).toBe(200)
    expect(await emailsOf(person)).toEqual({ email, users: [email] })
    for (const organization of [a, b]) {
      expect(await people.actionsIn(organization, person.accountId)).toContain('account.saved')
    }
    const operators = newEmail()
    const link = await operatorsLink(person, { kind: 'email', email: operators })
    expect((await accept(link)).body.account.email).toBe(operators)
  })

  test('of an owner is changed by owners only, and never without a password', async () => {
    const { admin, owner, id } = await app.createOrganization()
    const ask = (userId: string) => askForLink(admin, userId, { kind: 'email', email: newEmail() })
    expect((await ask(owner.userId)).error.code).toBe('forbidden_for_role')
    expect((await ask((await app.createPerson(id, 'member')).userId)).error.code).toBe('link_not_usable')
  })

  test('that another user or account has is refused, and the link stays usable', async () => {
    const [a, b] = await twoOrganizations()
    const person = await withPassword(a.id)
    const ofUser = { kind: 'email', email: a.member.email.toUpperCase() }
    expect((await askForLink(a.admin, person.userId, ofUser)).error.code).toBe('email_taken')
    const token = await linkFor(a.admin, person.userId, { kind: 'email', email: b.member.email })
    expect((await accept(token)).error.code).toBe('email_taken')
    expect(await isOpen(token)).toBe(true)
    expect(await emailsOf(person)).toEqual({ email: person.email, users: [person.email] })
    // Who tries addresses is seen where their accounts are, and is stopped like who guesses passwords.
    expect(await people.actionsIn(b, b.member.accountId)).toEqual(['account.sign_in_failed'])
  })

  test('belongs to a link of the kind email only', async () => {
    const { admin, member } = await app.createOrganization()
    const missing = await askForLink(admin, member.userId, { kind: 'email' })
    expect(missing.error.details).toMatchObject([{ field: 'email', code: 'missing' }])
    const extra = await askForLink(admin, member.userId, { kind: 'reset', email: newEmail() })
    expect(extra.error.details).toMatchObject([{ field: 'email', code: 'extra_forbidden' }])
  })

  test.each(['', 'ärger-', 'öl-straße-'])(
    '%s… compares without case: one of two users that are added at once, and no second user',
    async (start) => {
      const { admin } = await app.createOrganization()
      const [name, values] = [`${start}${newId()}`, { first_name: '', last_name: '', role: 'member' }]
      const emails = [`${name}@acme.test`, `${name.toUpperCase()}@Acme.test`]
      const add = (email: string) => app.call(admin, 'createUser', { body: { id: newId(), email, ...values } })
      const answers = await Promise.all(emails.map(add))
      expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([201, 409])
      for (const email of emails) expect((await add(email)).error.code).toBe('email_taken')
    },
  )
})

describe('An invitation', () => {
  test('says nothing of accounts: not when it is opened, nor to a password that is not good enough', async () => {
    const organization = await app.createOrganization('Initech')
    const known = await withPassword((await app.createOrganization()).id)
    await app.call(known, 'saveMe', { body: { name: 'The Secret Name' } })
    const answers = await Promise.all(
      [known.email, `${newId()}@acme.test`].map(async (email) => {
        const token = await invite(organization, 'member', email)
        const { body } = await app.call(null, 'openLink', { body: { token } })
        const { status, error } = await accept(token, 'password12345')
        return { ...body, email: '', expires_at: '', status, error: { ...error, request_id: '' } }
      }),
    )
    expect(answers[0]).toEqual(answers[1])
    expect(answers[0]).toMatchObject({ kind: 'invitation', name: 'Grace Hopper', status: 422 })
  })
})
