import { describe, expect, test } from '@jest/globals'
import {
  acceptInvitation,
  acceptReset,
  createSetupLink,
  createUserLink,
  findOneTimeLink,
  newId,
  operatorOf,
  recordTestNotice,
  signIn as signInWith,
  takeDueNotices,
} from '@workflow-service/database'
import { beginTransaction, untilLocked } from '@workflow-service/testkit'
import { NEW_PASSWORD, PASSWORD, PASSWORD_HASH, storedHash } from './support/passwords.ts'
import { keyIn, type TestOrganization, type TestPerson, userIn, useTestApp } from './support/use-app.ts'

const app = useTestApp()

const askForLink = (by: TestPerson, userId: string, body: { kind: string; email?: string }) =>
  app.call(by, 'createUserLink', { params: { user_id: userId }, body })
async function linkFor(...asked: Parameters<typeof askForLink>): Promise<string> {
  const response = await askForLink(...asked)
  if (response.status !== 201) throw new Error(response.text)
  return response.body.url.split('#')[1]!
}
async function createUser({ owner }: TestOrganization, role: string, email = `${newId()}@acme.test`): Promise<string> {
  const body = userIn({ email, first_name: 'Grace', last_name: 'Hopper', role })
  const { status, text } = await app.call(owner, 'createUser', { body })
  if (status !== 201) throw new Error(text)
  return body.id
}
/** Adds a member with the password PASSWORD. */
async function withPassword(organizationId: string, role: TestPerson['role'] = 'member'): Promise<TestPerson> {
  const person = await app.createPerson(organizationId, role)
  const where = { id: person.accountId }
  await app.db.prisma.account.update({ where, data: { passwordHash: PASSWORD_HASH } })
  return person
}
const signIn = async (email: string, password = PASSWORD): Promise<string | undefined> =>
  (await app.call(null, 'signIn', { body: { email, password } })).cookie
const accept = (token: string, password = PASSWORD) => app.call(null, 'acceptLink', { body: { token, password } })
/** Invites the address to the organization, and returns the token. */
const invite = async (organization: TestOrganization, role: string, email?: string): Promise<string> =>
  await linkFor(organization.owner, await createUser(organization, role, email), { kind: 'invitation' })
async function saveUser(by: TestPerson, userId: string, change: object) {
  const { body } = await app.call(by, 'listUsers', { query: { limit: 100 } })
  const { version } = body.data.find(({ id }) => id === userId)!
  return await app.call(by, 'saveUser', { params: { user_id: userId }, body: { ...change, version } })
}
const isSignedIn = async (token: string): Promise<boolean> => (await app.call(token, 'getMe')).status === 200
const isOpen = async (token: string): Promise<boolean> =>
  (await app.call(null, 'openLink', { body: { token } })).status === 200
/** The actions in the audit log of the organization, oldest first. */
async function actionsIn({ owner }: TestOrganization, target?: string): Promise<string[]> {
  const { body } = await app.call(owner, 'listAuditEvents', { query: { limit: 100, target_id: target } })
  return body.data.map(({ action }) => action).toReversed()
}

describe('One-time links', () => {
  test('an invitation makes an account, is used once of several times at once, and then never again', async () => {
    const token = await invite(app.organization, 'member')
    const responses = await Promise.all([1, 2].map(() => accept(token)))
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(1)
    const refused = responses.filter(({ status }) => status !== 200).map(({ error }) => error.code)
    for (const code of refused) expect(['link_not_usable', 'sign_in_failed']).toContain(code)
    expect((await app.call(null, 'openLink', { body: { token } })).error.code).toBe('link_not_usable')
  })

  test('a newer link, a new role, a deactivation and the time end a link', async () => {
    const organization = await app.createOrganization()
    const id = await createUser(organization, 'member')
    const newLink = () => linkFor(organization.admin, id, { kind: 'invitation' })
    const [first, second] = [await newLink(), await newLink()]
    expect([await isOpen(first), await isOpen(second)]).toEqual([false, true])
    await saveUser(organization.admin, id, { role: 'admin' })
    const third = await newLink()
    expect([await isOpen(second), await isOpen(third)]).toEqual([false, true])
    await app.db.pool.query('UPDATE one_time_links SET expires_at = now() WHERE user_id = $1', [id])
    expect(await isOpen(third)).toBe(false)
    const fourth = await newLink()
    await saveUser(organization.admin, id, { is_deactivated: true })
    expect(await isOpen(fourth)).toBe(false)
    expect((await askForLink(organization.admin, id, { kind: 'invitation' })).error.code).toBe('link_not_usable')
  })

  test('an invitation to a person who has an account needs its password, and ends the reset links of admins', async () => {
    const { id, admin } = app.organization
    const person = await withPassword(id)
    const other = await app.createOrganization()
    const reset = await linkFor(admin, person.userId, { kind: 'reset' })
    const token = await invite(other, 'member', person.email)
    expect((await accept(token, NEW_PASSWORD)).error.code).toBe('sign_in_failed')
    const right = await accept(token)
    expect(right.body.organizations.map((each) => each.id).toSorted()).toEqual([other.id, id].toSorted())
    const switched = await switchTo(right.cookie!, id)
    expect(switched.body.organization.id).toBe(id)
    // The admins of one organization could otherwise sign in to the other one as this person.
    expect(await isOpen(reset)).toBe(false)
    expect((await accept(reset, NEW_PASSWORD)).error.code).toBe('link_not_usable')
    expect((await askForLink(admin, person.userId, { kind: 'reset' })).error.code).toBe('link_not_usable')
  })

  test('of two invitations of one new address that are accepted at once, one works, and the other one afterwards', async () => {
    const email = `${newId()}@acme.test`
    const inviteOnce = async () => invite(await app.createOrganization(), 'member', email)
    const tokens = [await inviteOnce(), await inviteOnce()]
    // Both look for an account before one of them has hashed the password, which takes 80 ms.
    const responses = await Promise.all(tokens.map((token) => accept(token)))
    const lost = responses.findIndex(({ status }) => status !== 200)
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(responses[lost]?.error.code).toBe('email_taken')
    expect((await accept(tokens[lost]!)).body.organizations).toHaveLength(2)
  })

  test('an invitation makes an account also if first and last name are longer together than a name may be', async () => {
    const { owner } = app.organization
    const user = userIn({ first_name: 'G'.repeat(150), last_name: 'H'.repeat(150), role: 'member' })
    expect((await app.call(owner, 'createUser', { body: user })).status).toBe(201)
    const { status, body } = await accept(await linkFor(owner, user.id, { kind: 'invitation' }))
    expect(status).toBe(200)
    expect(body.account.name).toBe(`${'G'.repeat(150)} ${'H'.repeat(49)}`)
  })

  test('an invitation ends when its user has become an owner by a setup link', async () => {
    const organization = await app.createOrganization()
    const email = `${newId()}@acme.test`
    const invitation = await invite(organization, 'member', email)
    const token = await createSetupLink(app.db, organization.id)
    const body = { token, organization_name: 'Acme', name: 'Grace Hopper', email, password: PASSWORD }
    expect((await app.call(null, 'setUp', { body })).status).toBe(201)
    expect((await accept(invitation)).error.code).toBe('link_not_usable')
    expect(await isOpen(invitation)).toBe(false)
  })

  test('a reset link sets a new password and ends every sign-in', async () => {
    const person = await withPassword(app.organization.id)
    const token = await linkFor(app.organization.admin, person.userId, { kind: 'reset' })
    expect((await accept(token, NEW_PASSWORD)).status).toBe(200)
    expect(await isSignedIn(person.token)).toBe(false)
    expect(await signIn(person.email)).toBeUndefined()
    expect(await signIn(person.email, NEW_PASSWORD)).toBeDefined()
  })
})

describe('Sign-ins', () => {
  test('end with a new role, a deactivation, "sign out everywhere", and elsewhere with a new password', async () => {
    const { admin, id: organizationId } = await app.createOrganization()
    for (const change of [{ role: 'admin' }, { is_deactivated: true }, { role: null }]) {
      const { token, userId } = await app.createPerson(organizationId, 'member')
      expect((await saveUser(admin, userId, change)).status).toBe(200)
      expect(await isSignedIn(token)).toBe(false)
    }
    const person = await withPassword(organizationId)
    const second = (await signIn(person.email))!
    const reset = await linkFor(admin, person.userId, { kind: 'reset' })
    await app.call(person, 'changePassword', { body: { new_password: NEW_PASSWORD } })
    expect([await isSignedIn(person.token), await isSignedIn(second)]).toEqual([true, false])
    expect(await isOpen(reset)).toBe(false)
    await app.call(admin, 'signUserOut', { params: { user_id: person.userId } })
    expect(await isSignedIn(person.token)).toBe(false)
  })

  test('end after 7 days without use, and are kept by use, which is noted to the minute', async () => {
    const { token, accountId } = await app.createPerson(app.organization.id, 'member')
    const text = 'UPDATE sign_ins SET last_seen_at = now() - $2::interval WHERE account_id = $1'
    const seen = (age: string) => app.db.pool.query(text, [accountId, age])
    await seen('6 days 23 hours')
    expect(await isSignedIn(token)).toBe(true)
    const { lastSeenAt } = await app.db.prisma.signIn.findFirstOrThrow({ where: { accountId } })
    expect(Date.now() - lastSeenAt.getTime()).toBeLessThan(60_000)
    await seen('7 days 1 second')
    expect(await isSignedIn(token)).toBe(false)
  })

  test('a wrong password and an unknown address get the same response, and cost the same', async () => {
    const { email } = await withPassword(app.organization.id)
    const attempt = async (address: string) => {
      const startedMs = performance.now()
      const { status, error } = await app.call(null, 'signIn', { body: { email: address, password: NEW_PASSWORD } })
      return { status, code: error.code, message: error.message, ms: performance.now() - startedMs }
    }
    const { ms: _known, ...response } = await attempt(email)
    const { ms: _unknown, ...other } = await attempt(`${newId()}@acme.test`)
    expect(other).toEqual(response)
    const best = { known: Infinity, unknown: Infinity }
    for (let round = 0; round < 2; round += 1) {
      best.known = Math.min(best.known, (await attempt(email)).ms)
      best.unknown = Math.min(best.unknown, (await attempt(`${newId()}@acme.test`)).ms)
    }
    // Both hash a password, which takes most of the time; without it, a response takes a tenth.
    expect(Math.min(best.known, best.unknown) / Math.max(best.known, best.unknown)).toBeGreaterThan(0.2)
  })

  test('a new password must not be short, common, or made of the email address or the name of the organization', async () => {
    const { id } = await app.createOrganization('Initech-GmbH')
    const person = await app.createPerson(id, 'member', `ada.lovelace@${newId()}.test`)
    for (const [password, code = 'value_error'] of [
      ['a1b2c3d4e5f', 'string_too_short'],
      ['password12345'],
      ['qwertyuiop123456'],
      ['zebra-ada.lovelace-7'],
      ['zebra-initech-gmbh-7'],
    ]) {
      const { error } = await app.call(person, 'changePassword', { body: { new_password: password } })
      expect([password, error.details]).toMatchObject([password, [{ field: 'new_password', code }]])
    }
  })

  test('sensitive changes need a confirmation of the last 10 minutes', async () => {
    const organization = await app.createOrganization()
    const { owner, member } = organization
    const second = await app.createPerson(organization.id, 'owner')
    await app.call(owner, 'changePassword', { body: { new_password: PASSWORD } })
    const confirmedAt = new Date(Date.now() - 600_000)
    await app.db.prisma.signIn.updateMany({ where: { accountId: owner.accountId }, data: { confirmedAt } })
    const changes = [
      await app.call(owner, 'changePassword', { body: { new_password: NEW_PASSWORD } }),
      await askForLink(owner, member.userId, { kind: 'email', email: 'new@acme.test' }),
      await saveUser(owner, member.userId, { role: 'owner' }),
      await saveUser(owner, second.userId, { role: 'admin' }),
      await askForLink(owner, member.userId, { kind: 'reset' }),
      await app.call(owner, 'deleteOrganization', { body: { name: organization.name } }),
    ]
    expect(changes.map(({ error }) => error?.code)).toEqual(changes.map(() => 'confirmation_required'))
    expect((await app.call(owner, 'saveMe', { body: { name: 'Ada' } })).status).toBe(200)
    const wrong = await app.call(owner, 'confirmPassword', { body: { password: NEW_PASSWORD } })
    expect(wrong.error.code).toBe('sign_in_failed')
    const [failed] = (await app.call(owner, 'listAuditEvents')).body.data
    expect(failed).toMatchObject({ action: 'account.confirm_failed', actor: { kind: 'person', id: owner.userId } })
    const confirmed = await app.call(owner, 'confirmPassword', { body: { password: PASSWORD } })
    expect(confirmed.body.confirmed_until).not.toBeNull()
    expect((await saveUser(owner, member.userId, { role: 'owner' })).status).toBe(200)
  })
})

describe('Users', () => {
  test('an admin changes no owner and makes none; the attempt is in the audit log', async () => {
    const { admin, owner, member } = await app.createOrganization()
    const params = { user_id: owner.userId }
    const attempts = [
      await saveUser(admin, owner.userId, { role: 'member' }),
      await saveUser(admin, member.userId, { role: 'owner' }),
      await saveUser(admin, admin.userId, { role: 'owner' }),
      await app.call(admin, 'deleteUser', { params }),
      await app.call(admin, 'signUserOut', { params }),
      await askForLink(admin, owner.userId, { kind: 'reset' }),
      await app.call(admin, 'createUser', { body: userIn({ role: 'owner' }) }),
    ]
    expect(attempts.map(({ error }) => error?.code)).toEqual(attempts.map(() => 'forbidden_for_role'))
    const { body } = await app.call(owner, 'listAuditEvents', { query: { action: 'access.refused' } })
    expect(body.data).toHaveLength(attempts.length)
    expect(body.data[0]).toMatchObject({ actor: { kind: 'person', id: admin.userId }, target: { name: 'createUser' } })
    // One attempt was made before.
    for (let count = 0; count < 6; count += 1) await app.call(admin, 'deleteUser', { params })
    const query = { action: 'access.refused', limit: 100 }
    const { data } = (await app.call(owner, 'listAuditEvents', { query })).body
    expect(data.filter(({ target }) => target?.name === 'deleteUser')).toHaveLength(5)
  })

  test.each([
    ['invited', 'admin', (by, { invited }) => askForLink(by, invited, { kind: 'invitation' })],
    ['added', 'admin', (by) => app.call(by, 'createUser', { body: userIn({ role: 'admin' }) })],
    ['given a role', 'admin', (by, { member }) => saveUser(by, member.userId, { role: 'admin' })],
    ['removed', 'admin', (by, { member }) => app.call(by, 'deleteUser', { params: { user_id: member.userId } })],
    ['signed out', 'admin', (by, { member }) => app.call(by, 'signUserOut', { params: { user_id: member.userId } })],
    ['made an owner', 'owner', (by, { member }) => saveUser(by, member.userId, { role: 'owner' })],
    ['added as an owner', 'owner', (by) => app.call(by, 'createUser', { body: userIn({ role: 'owner' }) })],
  ] as const satisfies readonly [
    string,
    TestPerson['role'],
    (by: TestPerson, of: Pick<TestOrganization, 'member'> & { invited: string }) => unknown,
  ][])(
    'are not %s by a person who was an %s until the change waited for that of the role',
    async (_case, role, change) => {
      const organization = await app.createOrganization()
      const { id } = organization
      const invited = await createUser(organization, 'admin')
      const before = await app.createPerson(id, role)
      const people = 'SELECT id, role, account_id, signed_out_at FROM users WHERE organization_id = $1 ORDER BY id'
      using other = await beginTransaction(app.db.pool)
      await other.query('UPDATE organizations SET users_version = gen_random_uuid() WHERE id = $1', [id])
      const next = role === 'owner' ? 'admin' : 'member'
      await other.query('UPDATE users SET role = $2 WHERE id = $1', [before.userId, next])
      const { rows } = await other.query(people, [id])
      const changing = change(before, { ...organization, invited })
      await untilLocked(app.db.pool, 'organizations')
      await other.query('COMMIT')
      expect((await changing).error?.code).toBe('forbidden_for_role')
      expect((await app.db.pool.query(people, [id])).rows).toEqual(rows)
    },
  )

  test('two owners who remove each other at the same time leave one', async () => {
    for (let round = 0; round < 2; round += 1) {
      const { id, owner } = await app.createOrganization()
      const second = await app.createPerson(id, 'owner')
      const [a, b] = await Promise.all([
        app.call(owner, 'deleteUser', { params: { user_id: second.userId } }),
        app.call(second, 'deleteUser', { params: { user_id: owner.userId } }),
      ])
      const { rows } = await app.db.pool.query(`SELECT FROM users WHERE organization_id = $1 AND role = 'owner'`, [id])
      expect([rows.length, a.status === 204, b.status === 204].filter(Boolean)).toHaveLength(2)
    }
  })

  test('the last owner can neither step down nor leave', async () => {
    const organization = await app.createOrganization()
    const { owner } = organization
    // Neither of these owners can sign in.
    await createUser(organization, 'owner')
    const { userId } = await app.createPerson(organization.id, 'owner')
    await saveUser(owner, userId, { is_deactivated: true })
    const attempts = [
      await saveUser(owner, owner.userId, { role: 'admin' }),
      await saveUser(owner, owner.userId, { is_deactivated: true }),
      await app.call(owner, 'deleteUser', { params: { user_id: owner.userId } }),
    ]
    expect(attempts.map(({ error }) => error?.code)).toEqual(attempts.map(() => 'last_owner'))
  })

  test('of two changes of the same values, the later gets the current ones', async () => {
    const { admin, member } = await app.createOrganization()
    const { body } = await app.call(admin, 'listUsers')
    const { version } = body.data.find(({ id }) => id === member.userId)!
    const params = { user_id: member.userId }
    await app.call(admin, 'saveUser', { params, body: { first_name: 'Grace', version } })
    const late = await app.call(admin, 'saveUser', { params, body: { first_name: 'Ada', version } })
    expect(late.error).toMatchObject({ code: 'changed_meanwhile', current: { id: member.userId, first_name: 'Grace' } })
    const same = await app.call(admin, 'saveUser', { params, body: { first_name: 'Grace', version } })
    expect(same.body.first_name).toBe('Grace')
  })

  test('a user can be added twice with one id, and once with one address', async () => {
    const body = userIn({ email: 'grace@acme.test' })
    expect((await app.call('admin', 'createUser', { body })).status).toBe(201)
    expect((await app.call('admin', 'createUser', { body })).body.state).toBe('no_access')
    const again = await app.call('admin', 'createUser', { body: { ...body, id: newId() } })
    expect(again.error.code).toBe('email_taken')
    const other = await app.call('admin', 'createUser', { body: { ...body, email: 'other@acme.test' } })
    expect(other.error.code).toBe('id_taken')
  })

  test('and organizations, keys and workflows cannot have a name that is invisible', async () => {
    const { owner } = await app.createOrganization()
    const name = '\u200b\u3164'
    const { version } = (await app.call(owner, 'getOrganization')).body
    const responses = [
      await app.call(owner, 'saveMe', { body: { name } }),
      await app.call(owner, 'saveOrganization', { body: { name, version } }),
      await app.call(owner, 'createUser', { body: userIn({ first_name: name }) }),
      await app.call(owner, 'createApiKey', { body: keyIn({ name }) }),
      await app.call(owner, 'createWorkflow', { body: { id: newId(), name, description: '', scope: 'only_me' } }),
    ]
    for (const { error } of responses) {
      expect(error.details).toMatchObject([{ field: expect.stringMatching(/name$/), code: 'value_error' }])
    }
  })

  test('are listed by address, page by page', async () => {
    const organization = await app.createOrganization()
    for (const name of ['a', 'b', 'c']) await createUser(organization, 'member', `${name}@acme.test`)
    const emails = await app.listAll(organization.member, 'listUsers', 'email')
    expect(emails).toHaveLength(6)
    expect(emails.slice(0, 2)).toEqual(['a@acme.test', expect.stringContaining('admin')])
  })

  test('a removed user loses the account, unless another organization has it', async () => {
    const { admin, member } = await app.createOrganization()
    await app.call(admin, 'deleteUser', { params: { user_id: member.userId } })
    expect(await isSignedIn(member.token)).toBe(false)
    expect(await app.db.prisma.account.findUnique({ where: { id: member.accountId } })).toBeNull()
  })
})

test('The audit log has no entry of a name that is saved as it was, also by requests at once', async () => {
  const { member } = await app.createOrganization()
  const save = () => app.call(member, 'saveMe', { body: { name: 'Ada' } })
  await Promise.all([save(), save(), save()])
  await save()
  expect((await app.auditOf(member.accountId)).map(({ action }) => action)).toEqual(['account.saved'])
})

test('The audit log is filtered by person, thing, action, kind of action and time', async () => {
  const organization = await app.createOrganization()
  const { owner, admin } = organization
  const id = await createUser(organization, 'member')
  await saveUser(admin, id, { first_name: 'Ada' })
  const since = new Date().toISOString()
  await app.call(admin, 'deleteUser', { params: { user_id: id } })
  const actions = async (query: Record<string, string>) =>
    (await app.call(owner, 'listAuditEvents', { query })).body.data.map(({ action }) => action)
  expect(await actions({ target_id: id })).toEqual(['user.removed', 'user.saved', 'user.created'])
  expect(await actions({ actor_id: admin.userId })).toEqual(['user.removed', 'user.saved'])
  expect(await actions({ action: 'user.saved' })).toEqual(['user.saved'])
  expect(await actions({ action: 'user.', limit: '2' })).toEqual(['user.removed', 'user.saved'])
  expect(await actions({ since })).toEqual(['user.removed'])
  expect(await actions({ until: since })).toEqual(['user.saved', 'user.created'])
  // PostgreSQL has no year 0.
  const all = { since: '0000-01-01T00:00:00Z', until: '9999-12-31T23:59:59-01:00' }
  expect(await actions(all)).toEqual(['user.removed', 'user.saved', 'user.created'])
  const { body } = await app.call(owner, 'listAuditEvents', { query: { action: 'user.saved' } })
  expect(body.data[0]?.changes).toEqual([{ field: 'first_name', old: 'Grace', new: 'Ada' }])
})

const VISITOR = { principal: { address: '192.0.2.1', userAgent: 'test' }, requestId: 'r' }
const allow = (): void => {}

const twoOrganizations = async () => [await app.createOrganization(), await app.createOrganization()] as const

/** Returns a person of two organizations with a password. */
async function personOfTwo() {
  const [a, b] = await twoOrganizations()
  const person = await withPassword(a.id)
  return { a, b, person, userOfB: await addTo(b, person) }
}

/** Makes the person a user of the organization, too, and returns the user's id. */
async function addTo({ id: organizationId }: TestOrganization, person: TestPerson, role = 'member'): Promise<string> {
  const { accountId, email } = person
  const id = newId()
  await app.db.prisma.user.create({ data: { id, organizationId, email, firstName: 'Grace', accountId, role } })
  return id
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
    const gone = await app.createPerson(a.id, 'admin')
    const ofGone = await linkFor(gone, person.userId, { kind: 'reset' })
    await saveUser(a.owner, gone.userId, { is_deactivated: true })
    expect((await accept(ofGone, NEW_PASSWORD)).error.code).toBe('link_not_usable')
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
      expect(await actionsIn(organization, person.accountId)).toContain('account.password_changed')
      expect(await actionsIn(organization, person.userId)).toContain('user.link_created')
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
    for (let round = 0; round < 2; round += 1) {
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
        acceptReset(app.db, links[0]!, 'of the admin', VISITOR),
        acceptInvitation(app.db, links[1]!, checked, VISITOR),
      ])
      const ended = [byAdmin ? 'reset' : 'no reset', typeof joined === 'object' ? 'joined' : joined]
      expect([
        ['reset', 'password_changed'],
        ['no reset', 'joined'],
      ]).toContainEqual(ended)
    }
  })
})

test('A password that an earlier release has hashed signs the person in', async () => {
  const { accountId, email } = await withPassword(app.organization.id)
  const passwordHash = storedHash(PASSWORD, [47_104, 1])
  await app.db.prisma.account.update({ where: { id: accountId }, data: { passwordHash } })
  expect([await signIn(email, NEW_PASSWORD), await signIn(email)]).toEqual([undefined, expect.any(String)])
})

test('A password that was replaced signs no person in, even if it was checked before', async () => {
  const person = await withPassword(app.organization.id)
  const account = { id: person.accountId, name: 'Ada', passwordHash: 'checked before it was replaced' }
  const membership = { id: app.organization.id, userId: person.userId }
  expect(await signInWith(app.db, account, membership, 'password', VISITOR)).toBeUndefined()
})

test('A password that was replaced is not replaced again by a sign-in that the reset has ended', async () => {
  const { id, admin } = await app.createOrganization()
  const person = await withPassword(id)
  const reset = await linkFor(admin, person.userId, { kind: 'reset' })
  // The reset holds the lock of the account when the change begins.
  using holder = await beginTransaction(app.db.pool)
  await holder.query('SELECT FROM accounts WHERE id = $1 FOR UPDATE', [person.accountId])
  const change = app.call(person, 'changePassword', { body: { new_password: PASSWORD } })
  await untilLocked(app.db.pool)
  await holder.query('DELETE FROM sign_ins WHERE account_id = $1', [person.accountId])
  await holder.query('COMMIT')
  expect((await change).error.code).toBe('unauthorized')
  expect((await accept(reset, NEW_PASSWORD)).status).toBe(200)
})

describe('A sign-in in another organization', () => {
  test.each([
    ['"sign out everywhere"', null, 401, 'member'],
    ['another role', { role: 'admin' }, 401, 'admin'],
    ['a deactivation', { is_deactivated: true }, 404, undefined],
  ])('does not come back after %s', async (_case, change, status, role) => {
    const { a, b, person } = await personOfTwo()
    const { token } = person
    expect((await switchTo(token, b.id)).body.organization.id).toBe(b.id)
    if (change) await saveUser(a.owner, person.userId, change)
    else await app.call(a.admin, 'signUserOut', { params: { user_id: person.userId } })
    expect((await switchTo(token, a.id)).status).toBe(status)
    // It stays signed in where it was, and a new one works.
    expect((await app.call(token, 'getMe')).body.organization.id).toBe(b.id)
    const again = await switchTo((await signIn(person.email))!, a.id)
    expect(again.body.role).toBe(role)
  })

  test('that is switched at the same moment is ended too', async () => {
    for (let round = 0; round < 2; round += 1) {
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

  test.each([
    ['switch', ({ b, person }: Awaited<ReturnType<typeof personOfTwo>>) => switchTo(person.token, b.id)],
    ['change of the role', ({ a, person }) => saveUser(a.owner, person.userId, { role: 'admin' })],
  ])('leads to no deadlock between a %s and a change of the password', async (_case, change) => {
    const people = await personOfTwo()
    const { accountId } = people.person
    using holder = await beginTransaction(app.db.pool)
    await holder.query('SELECT FROM accounts WHERE id = $1 FOR NO KEY UPDATE', [accountId])
    const changed = change(people)
    await untilLocked(app.db.pool)
    // If the sign-in were locked already, this would be a deadlock.
    await holder.query('DELETE FROM sign_ins WHERE account_id = $1', [accountId])
    await holder.query('COMMIT')
    expect((await changed).status).toBeLessThan(500)
  })

  test('is where the next sign-in begins, until the person leaves that organization', async () => {
    const { a, b, person, userOfB } = await personOfTwo()
    const token = (await signIn(person.email))!
    await switchTo(token, b.id)
    await app.call(token, 'signOut')
    const nextIn = async () => (await app.call((await signIn(person.email))!, 'getMe')).body.organization.id
    expect([await nextIn(), await nextIn()]).toEqual([b.id, b.id])
    await app.call(b.owner, 'deleteUser', { params: { user_id: userOfB } })
    expect(await nextIn()).toBe(a.id)
  })

  test('is in the audit log of the organization that the person enters', async () => {
    const { b, person } = await personOfTwo()
    const before = (await actionsIn(b, person.accountId)).length
    await switchTo(person.token, b.id)
    const { body } = await app.call(b.owner, 'listAuditEvents', { query: { target_id: person.accountId } })
    expect(body.data.length).toBeGreaterThan(before)
    expect(body.data[0]).toMatchObject({ action: 'account.signed_in', changes: [{ field: 'method', new: 'switch' }] })
  })
})

const confirm = (token: string) => app.call(token, 'confirmPassword', { body: { password: PASSWORD } })

test('A sign-in that ends while it is confirmed or enters another organization does neither, also in the audit log', async () => {
  for (const change of [confirm, switchTo]) {
    const { a, b, person } = await personOfTwo()
    using ending = await beginTransaction(app.db.pool)
    await ending.query('DELETE FROM sign_ins WHERE account_id = $1', [person.accountId])
    const changing = change(person.token, b.id)
    await untilLocked(app.db.pool)
    await ending.query('COMMIT')
    expect((await changing).error.code).toBe('unauthorized')
    for (const { owner } of [a, b]) {
      const { body } = await app.call(owner, 'listAuditEvents', { query: { action: 'account.' } })
      expect(body.data).toEqual([])
    }
    const where = { id: person.accountId }
    expect(await app.db.prisma.account.findUnique({ where })).toMatchObject({ lastOrganizationId: null })
  }
})

const newEmail = () => `${newId()}@proven.test`

describe('An email address', () => {
  test('is not changed by the person alone', async () => {
    const { error } = await app.call(app.organization.member, 'saveMe', { body: { name: 'Ada', email: newEmail() } })
    expect(error.details).toMatchObject([{ field: 'email', code: 'extra_forbidden' }])
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
    expect([await signIn(person.email), await signIn(email)]).toEqual([undefined, expect.any(String)])
    expect((await accept(token)).error.code).toBe('link_not_usable')
    const { body } = await app.call(a.owner, 'listAuditEvents', { query: { action: 'account.saved' } })
    expect(body.data[0]?.changes).toEqual([{ field: 'email', old: person.email, new: email }])
  })

  test('that is new gets the notices that wait', async () => {
    const { id, admin } = await app.createOrganization()
    const person = await withPassword(id)
    const waiting = (await recordTestNotice(app.db, id, person.userId))!
    const email = newEmail()
    expect((await accept(await linkFor(admin, person.userId, { kind: 'email', email }))).status).toBe(200)
    await app.db.pool.query('UPDATE notices SET next_at = now() WHERE id = $1', [waiting.id])
    const due = await takeDueNotices(app.db, 100, true)
    expect(due.find((notice) => notice.id === waiting.id)?.recipient).toBe(email)
  })

  test('of a person of several organizations needs an admin of each, when the link is made and when it is used', async () => {
    const { a, b, person } = await personOfTwo()
    const admin = await withPassword(a.id, 'admin')
    const email = newEmail()
    const asked = [admin, person.userId, { kind: 'email', email }] as const
    expect((await askForLink(...asked)).error.code).toBe('link_not_usable')
    const adminOfB = await addTo(b, admin, 'admin')
    const token = await linkFor(...asked)
    await saveUser(b.owner, adminOfB, { role: 'member' })
    expect((await accept(token)).error.code).toBe('link_not_usable')
    await saveUser(b.owner, adminOfB, { role: 'admin' })
    expect((await accept(await linkFor(...asked))).status).toBe(200)
    expect(await emailsOf(person)).toEqual({ email, users: [email] })
    for (const organization of [a, b]) {
      expect(await actionsIn(organization, person.accountId)).toContain('account.saved')
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
    const { error } = await accept(token)
    expect(error).toMatchObject({
      code: 'email_taken',
      message: expect.stringContaining('Ask for a link with another'),
    })
    expect(await isOpen(token)).toBe(true)
    expect(await emailsOf(person)).toEqual({ email: person.email, users: [person.email] })
    // Who tries addresses is seen where their accounts are, and is stopped like who guesses passwords.
    expect(await actionsIn(b, b.member.accountId)).toEqual(['account.sign_in_failed'])
  })

  test('belongs to a link of the kind email only', async () => {
    const { admin, member } = await app.createOrganization()
    const missing = await askForLink(admin, member.userId, { kind: 'email' })
    expect(missing.error.details).toMatchObject([{ field: 'email', code: 'missing' }])
    const extra = await askForLink(admin, member.userId, { kind: 'reset', email: newEmail() })
    expect(extra.error.details).toMatchObject([{ field: 'email', code: 'extra_forbidden' }])
  })

  test.each(['', 'öl-straße-'])(
    '%s… compares without case: one of two users that are added at once, and no second user',
    async (start) => {
      const { admin } = await app.createOrganization()
      const [name, values] = [`${start}${newId()}`, { first_name: '', last_name: '', role: 'member' }]
      const emails = [`${name}@acme.test`, `${name.toUpperCase()}@Acme.test`]
      const add = (email: string) => app.call(admin, 'createUser', { body: { id: newId(), email, ...values } })
      const responses = await Promise.all(emails.map(add))
      expect(responses.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([201, 409])
      for (const email of emails) expect((await add(email)).error.code).toBe('email_taken')
    },
  )
})

test('An invitation says nothing of accounts: not when it is opened, nor to a password that is not good enough', async () => {
  const organization = await app.createOrganization('Initech')
  const known = await withPassword((await app.createOrganization()).id)
  await app.call(known, 'saveMe', { body: { name: 'The Secret Name' } })
  const responses = await Promise.all(
    [known.email, `${newId()}@acme.test`].map(async (email) => {
      const token = await invite(organization, 'member', email)
      const { body } = await app.call(null, 'openLink', { body: { token } })
      const { status, error } = await accept(token, 'password12345')
      return { ...body, email: '', expires_at: '', status, error: { ...error, request_id: '' } }
    }),
  )
  expect(responses[0]).toEqual(responses[1])
  expect(responses[0]).toMatchObject({ kind: 'invitation', name: 'Grace Hopper', status: 422 })
})
