import { describe, expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { NEW_PASSWORD, PASSWORD, usePeople } from './support/people.ts'
import { useTestApp } from './support/test-app.ts'

const app = useTestApp()
const { accept, askForLink, createUser, invite, isOpen, isSignedIn, linkFor, saveUser, signIn, withPassword } =
  usePeople(app)

const userIn = (email: string) => ({ id: newId(), email, first_name: '', last_name: '', role: null })

describe('One-time links', () => {
  test('an invitation makes an account, is used once of several times at once, and then never again', async () => {
    const token = await invite(app.organization, 'member')
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => accept(token)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    const refused = answers.filter(({ status }) => status !== 200).map(({ error }) => error.code)
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
  })

  test('an invitation to a person who has an account needs the password of that account', async () => {
    const person = await withPassword(app.organization.id)
    const other = await app.createOrganization()
    const token = await invite(other, 'member', person.email)
    expect((await accept(token, NEW_PASSWORD)).error.code).toBe('sign_in_failed')
    const right = await accept(token)
    const { id } = app.organization
    expect(right.body.organizations.map((each) => each.id).toSorted()).toEqual([other.id, id].toSorted())
    const switched = await app.call(right.cookie!, 'switchOrganization', { body: { organization_id: id } })
    expect(switched.body.organization.id).toBe(id)
    // The admins of one organization could otherwise sign in to the other one as this person.
    expect((await askForLink(app.organization.admin, person.userId, { kind: 'reset' })).error.code).toBe(
      'link_not_usable',
    )
  })

  test('of two invitations of one new address that are accepted at once, one works, and the other one afterwards', async () => {
    const email = `${newId()}@acme.test`
    const inviteOnce = async () => invite(await app.createOrganization(), 'member', email)
    const tokens = [await inviteOnce(), await inviteOnce()]
    // Both look for an account before one of them has hashed the password, which takes 80 ms.
    const answers = await Promise.all(tokens.map((token) => accept(token)))
    const lost = answers.findIndex(({ status }) => status !== 200)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers[lost]?.error.code).toBe('email_taken')
    expect((await accept(tokens[lost]!)).body.organizations).toHaveLength(2)
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
    await app.call(person, 'changePassword', { body: { new_password: NEW_PASSWORD } })
    expect([await isSignedIn(person.token), await isSignedIn(second)]).toEqual([true, false])
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

  test('a wrong password and an unknown address get the same answer, and cost the same', async () => {
    const { email } = await withPassword(app.organization.id)
    const attempt = async (address: string) => {
      const startedMs = performance.now()
      const { status, error } = await app.call(null, 'signIn', { body: { email: address, password: NEW_PASSWORD } })
      return { status, code: error.code, message: error.message, ms: performance.now() - startedMs }
    }
    const { ms: _known, ...answer } = await attempt(email)
    const { ms: _unknown, ...other } = await attempt(`${newId()}@acme.test`)
    expect(other).toEqual(answer)
    const best = { known: Infinity, unknown: Infinity }
    for (let round = 0; round < 3; round += 1) {
      best.known = Math.min(best.known, (await attempt(email)).ms)
      best.unknown = Math.min(best.unknown, (await attempt(`${newId()}@acme.test`)).ms)
    }
    // Both hash a password, which takes most of the time; without it, an answer takes a tenth.
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
    expect((await app.call(owner, 'saveMe', { body: { name: 'Ada', email: owner.email } })).status).toBe(200)
    const wrong = await app.call(owner, 'confirmPassword', { body: { password: NEW_PASSWORD } })
    expect(wrong.error.code).toBe('sign_in_failed')
    const confirmed = await app.call(owner, 'confirmPassword', { body: { password: PASSWORD } })
    expect(confirmed.body.confirmed_until).not.toBeNull()
    expect((await saveUser(owner, member.userId, { role: 'owner' })).status).toBe(200)
  })
})

describe('Users', () => {
  test('an admin changes no owner and makes none; the attempt is in the audit log', async () => {
    const { admin, owner, member, id } = await app.createOrganization()
    const params = { user_id: owner.userId }
    const attempts = [
      await saveUser(admin, owner.userId, { role: 'member' }),
      await saveUser(admin, member.userId, { role: 'owner' }),
      await saveUser(admin, admin.userId, { role: 'owner' }),
      await app.call(admin, 'deleteUser', { params }),
      await app.call(admin, 'signUserOut', { params }),
      await askForLink(admin, owner.userId, { kind: 'reset' }),
      await app.call(admin, 'createUser', { body: { ...userIn('x@acme.test'), role: 'owner' } }),
    ]
    expect(attempts.map(({ error }) => error?.code)).toEqual(attempts.map(() => 'forbidden_for_role'))
    const { body } = await app.call(owner, 'listAuditEvents', { query: { action: 'access.refused' } })
    expect(body.data).toHaveLength(attempts.length)
    expect(body.data[0]).toMatchObject({ actor: { kind: 'person', id: admin.userId }, target: { name: 'createUser' } })
    expect(id).toBe(owner.organizationId)
    for (let count = 0; count < 20; count += 1) await app.call(admin, 'deleteUser', { params })
    const query = { action: 'access.refused', limit: 100 }
    const { data } = (await app.call(owner, 'listAuditEvents', { query })).body
    expect(data.filter(({ target }) => target?.name === 'deleteUser')).toHaveLength(5)
  })

  test('two owners who remove each other at the same time leave one', async () => {
    for (let round = 0; round < 3; round += 1) {
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
    const { owner } = await app.createOrganization()
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
    const body = userIn('grace@acme.test')
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
    const answers = [
      await app.call(owner, 'saveMe', { body: { name } }),
      await app.call(owner, 'saveOrganization', { body: { name, version } }),
      await app.call(owner, 'createUser', { body: { ...userIn('x@acme.test'), first_name: name } }),
      await app.call(owner, 'createApiKey', { body: { id: newId(), name, scopes: ['read'], expires_at: null } }),
      await app.call(owner, 'createWorkflow', { body: { id: newId(), name, description: '', scope: 'only_me' } }),
    ]
    for (const { error } of answers) {
      expect(error.details).toMatchObject([{ field: expect.stringMatching(/name$/), code: 'value_error' }])
    }
  })

  test('are listed by address, page by page', async () => {
    const organization = await app.createOrganization()
    for (const name of ['a', 'b', 'c']) await createUser(organization, 'member', `${name}@acme.test`)
    const emails = await app.listAll(organization.member, 'listUsers', 'email')
    expect(emails).toHaveLength(6)
    expect(emails.slice(0, 2)).toEqual(['a@acme.test', expect.stringContaining('admin')])
    const { error } = await app.call(organization.member, 'listUsers', { query: { cursor: 'x' } })
    expect(error.details).toMatchObject([{ field: 'cursor', code: 'invalid_cursor' }])
  })

  test('a removed user loses the account, unless another organization has it', async () => {
    const { admin, member } = await app.createOrganization()
    await app.call(admin, 'deleteUser', { params: { user_id: member.userId } })
    expect(await isSignedIn(member.token)).toBe(false)
    expect(await app.db.prisma.account.findUnique({ where: { id: member.accountId } })).toBeNull()
  })
})

describe('The audit log', () => {
  test('is filtered by person, thing, action, kind of action and time', async () => {
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
    const { body } = await app.call(owner, 'listAuditEvents', { query: { action: 'user.saved' } })
    expect(body.data[0]?.changes).toEqual([{ field: 'first_name', old: 'Grace', new: 'Ada' }])
  })
})
