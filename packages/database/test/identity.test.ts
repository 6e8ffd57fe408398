import { afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals'
import { setProcessClock } from '@workflow-service/testkit/set-process-clock'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import * as storage from '../src/index.ts'

// One connection, so that its statistics are complete when it reads them.
const database = useTestDatabase({ maxConnections: 1 })

const allow = (): void => {}

/** How often each table was read from its beginning to its end. */
async function fullScans(): Promise<Record<string, number>> {
  const { pool } = database.db
  await pool.query('SELECT pg_stat_force_next_flush()')
  const { rows } = await pool.query<{ name: string; count: number }>(
    'SELECT relname AS name, seq_scan::int AS count FROM pg_stat_user_tables WHERE seq_scan > 0',
  )
  return Object.fromEntries(rows.map(({ name, count }) => [name, count]))
}

test('No statement of sign-in, people and audit log reads a whole table', async () => {
  const { db } = database
  const before = await fullScans()
  const visitor = { principal: { address: '192.0.2.1', userAgent: 'test' }, requestId: 'r' }

  const setup = await storage.createSetupLink(db, null)
  const link = (await storage.findOneTimeLink(db, setup))!
  const ada = { name: 'Ada', email: 'ada@acme.test', passwordHash: 'x', oidc: { issuer: 'i', subject: 's' } }
  const owner = (await storage.completeSetup(db, link, ada, 'Acme', visitor)) as storage.UsedLink
  expect(await storage.hasAccounts(db)).toBe(true)
  await storage.findAccountById(db, owner.accountId)
  await storage.findAccountByOidc(db, { issuer: 'i', subject: 's' })
  const account = (await storage.findAccountByEmail(db, 'ADA@acme.test'))!
  await storage.recordFailedSignIn(db, account, visitor)
  const token = (await storage.signIn(db, account, account.organizations[0]!, 'password', visitor))!
  const age = `UPDATE sign_ins SET last_seen_at = now() - interval '1 hour' WHERE account_id = $1`
  await db.pool.query(age, [account.id])
  const user = (await storage.findSignedInUser(db, token))!
  const request = { principal: { ...user, address: null }, requestId: 'r' }
  await storage.saveAccount(db, { name: 'Ada L.' }, request)
  await storage.changePassword(db, 'y', request)
  await storage.confirmSignIn(db, request)
  await storage.switchOrganization(db, user.organizationId, request)
  await storage.listSignIns(db, user)

  const id = storage.newId()
  await storage.createUser(db, { id, email: 'bo@acme.test', first_name: '', last_name: '', role: 'member' }, request)
  const made = await storage.createUserLink(db, id, { kind: 'invitation' }, allow, request)
  const invited = (await storage.findInvitation(db, 'BO@acme.test'))!
  const bo = { name: 'Bo', email: 'bo@acme.test', passwordHash: 'x' }
  await storage.acceptInvitation(db, { ...invited, token: (made as { token: string }).token }, bo, visitor)
  const reset = (await storage.createUserLink(db, id, { kind: 'reset' }, allow, request)) as { token: string }
  await storage.acceptReset(db, (await storage.findOneTimeLink(db, reset.token))!, 'z', visitor)
  const change = { kind: 'email', email: 'bo@globex.test' } as const
  const email = (await storage.createUserLink(db, id, change, allow, request)) as { token: string }
  const emailLink = (await storage.findOneTimeLink(db, email.token))!
  await storage.acceptEmail(db, emailLink, { accountId: emailLink.accountId!, passwordHash: 'z' }, visitor)
  await storage.findUserById(db, user.organizationId, id)
  await storage.findUserByEmail(db, user.organizationId, 'BO@globex.test')
  await storage.findAccountByUser(db, id)
  const [, listed] = await storage.listUsers(db, storage.viewerOf(user), { limit: 10 })
  await storage.saveUser(db, id, { role: 'admin', version: listed!.version }, allow, request)
  await storage.signUserOut(db, id, allow, request)
  await storage.deleteUser(db, id, allow, request)
  for (const query of [{ action: 'user.' }, { actorId: user.userId }, { targetId: id }, { since: new Date(0) }]) {
    await storage.listAuditEvents(db, user.organizationId, { limit: 10, ...query })
  }

  const { version } = (await storage.readOrganization(db, user.organizationId))!
  await storage.saveOrganization(db, { name: 'Globex', version }, request)
  await storage.endSignIn(db, user.signInId, request)
  await storage.deleteEndedSignIns(db, 10)
  await storage.deleteOrganization(db, request)
  while (await storage.deleteOrganizationRows(db));
  expect(await fullScans()).toEqual(before)
})

const organizationId = storage.newId()
const [first, second, third] = [storage.newId(), storage.newId(), storage.newId()]

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

async function add(email: string) {
  const user = { id: storage.newId(), email, first_name: '', last_name: '', role: null }
  return await storage.createUser(database.db, user, storage.operatorOf(organizationId))
}
const remove = (id: string) => storage.deleteUser(database.db, id, () => {}, storage.operatorOf(organizationId))
const duplicates = async () => (await storage.listDuplicateUsers(database.db)).map(({ email }) => email)

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

/** Adds a user as a service of 1.0.0 does, also during an upgrade. */
const insert = async (email: string, role: string | null) =>
  (await database.db.prisma.user.create({ data: { id: storage.newId(), organizationId, email, role } })).id
const keyOf = async (id: string) => (await database.db.prisma.user.findFirstOrThrow({ where: { id } })).emailKey

describe('Addresses with letters beyond ASCII', () => {
  test.each([
    ['ärger@acme.test', 'ÄRGER@acme.test'],
    ['straße@acme.test', 'STRASSE@acme.test'],
    ['\u212Aelvin@acme.test', 'kelvin@acme.test'],
  ])('%s and %s are the same', async (one, other) => {
    expect(await add(one)).toMatchObject({ email: one })
    expect(await add(other)).toBe('email_taken')
    expect(await storage.findUserByEmail(database.db, organizationId, other)).toMatchObject({ email: one })
  })

  test('of rows without a folded address get it, and of two that are the same then, one becomes a duplicate', async () => {
    const emails = ['ÉÖ@acme.test', 'éÖ@acme.test', 'éö@acme.test', 'Ü@acme.test']
    const [, folded, plain, alone] = await Promise.all(
      emails.map((email, index) => insert(email, index === 1 ? 'member' : null)),
    )
    expect(await storage.foldEmails(database.db)).toBe(3)
    const keys = await Promise.all([folded!, plain!, alone!].map(keyOf))
    expect(keys).toEqual(['éö@acme.test', null, 'ü@acme.test'])
    expect(await duplicates()).toEqual(['ÉÖ@acme.test', 'éÖ@acme.test'])
    expect(await storage.foldEmails(database.db)).toBe(0)
    expect(await add('Éö@acme.test')).toBe('email_taken')
    await remove(plain!)
    expect(await duplicates()).toHaveLength(1)
  })

  test('and a folded address does not outlive the address', async () => {
    const { id } = (await add('Élan@acme.test')) as { id: string }
    expect(await keyOf(id)).toBe('élan@acme.test')
    await database.db.pool.query(`UPDATE users SET email = 'plain@acme.test' WHERE id = $1`, [id])
    await storage.foldEmails(database.db)
    expect(await keyOf(id)).toBeNull()
    expect(await add('PLAIN@acme.test')).toBe('email_taken')
  })
})

async function issue(expiresAt: Date | null = null) {
  const key = { name: storage.newId(), scopes: ['read' as const], expiresAt }
  return await storage.issueApiKey(database.db, key, storage.operatorOf(organizationId))
}

test('issueApiKey stores an expiry, which findPrincipals compares with the clock of the database', async () => {
  const { rows } = await database.db.pool.query<{ now: Date }>('SELECT clock_timestamp() AS now')
  const inSeconds = (seconds: number) => new Date(rows[0]!.now.getTime() + seconds * 1_000)
  const expiries = [inSeconds(3_600), inSeconds(-60), null]
  const keys = await Promise.all(expiries.map(issue))
  const endless = await issue(inSeconds(1))
  await database.db.pool.query("UPDATE api_keys SET expires_at = 'infinity' WHERE id = $1", [endless.apiKey.id])
  const expiry = async ({ apiKey: { prefix } }: (typeof keys)[number]) =>
    (await storage.findPrincipals(database.db, [prefix]))[0]?.expiresInMs
  const [future, past, never] = await Promise.all(keys.map(expiry))
  expect(future).toBeGreaterThan(3_000_000)
  expect(future).toBeLessThanOrEqual(3_600_000)
  expect(past).toBeLessThanOrEqual(-60_000)
  expect([never, await expiry(endless)]).toEqual([null, null])
})

describe('a process whose time of day is wrong', () => {
  afterEach(() => void jest.useRealTimers())

  test.each([-73, -2, 24 * 31])('by %d h writes and compares times of the database', async (hours) => {
    const { db } = database
    const { pool } = db
    setProcessClock(hours * 3_600_000)
    const visitor = { principal: { address: '192.0.2.1', userAgent: 'test' }, requestId: 'r' }
    const token = await storage.createSetupLink(db, null)
    const link = (await storage.findOneTimeLink(db, token))!
    expect(link).toBeDefined()
    const person = { name: 'Eve', email: `eve${hours}@acme.test`, passwordHash: 'x' }
    const used = (await storage.completeSetup(db, link, person, 'Clocks', visitor)) as storage.UsedLink
    const membership = { id: used.organizationId, userId: used.userId }
    const signIn = await storage.signIn(db, { id: used.accountId, name: 'Eve' }, membership, 'password', visitor)
    const user = (await storage.findSignedInUser(db, signIn!))!
    expect(await storage.listSignIns(db, user)).toHaveLength(1)
    const by = { principal: { ...user, address: null }, requestId: 'r' }
    const workflowId = storage.newId()
    await storage.createWorkflow(db, { ...by, workflowId }, { name: 'W', description: '', scope: 'company_wide' })
    await storage.setWorkflowActive(db, { ...by, workflowId }, true)
    const { rows } = await pool.query<{ at: Date }>(
      `SELECT created_at AS at FROM organizations WHERE id = $1
       UNION ALL SELECT unnest(ARRAY[created_at, updated_at]) FROM workflows WHERE organization_id = $1
       UNION ALL SELECT expires_at - interval '72 hours' FROM one_time_links WHERE used_at = (SELECT max(used_at) FROM one_time_links)`,
      [used.organizationId],
    )
    jest.useRealTimers()
    expect(rows.map(({ at }) => Math.abs(Math.round((at.getTime() - Date.now()) / 60_000)))).toEqual([0, 0, 0, 0])
  })
})

test('touchApiKeys advances the times of many keys at once, and never sets an earlier time', async () => {
  const [{ apiKey: one }, { apiKey: two }] = [await issue(), await issue()]
  const [early, late] = [48 * 3_600_000, 24 * 3_600_000]
  const touch = (...used: [string, number][]) => storage.touchApiKeys(database.db, new Map(used))
  const hoursAgo = async () => {
    const keys = await storage.listApiKeys(database.db, organizationId)
    const times = new Map(keys.map((key) => [key.id, Date.parse(key.last_used_at!)]))
    return [one, two].map(({ id }) => Math.round((Date.now() - times.get(id)!) / 3_600_000))
  }
  await touch([one.id, late], [two.id, early])
  await touch([two.id, late], [one.id, early], [storage.newId(), late])
  expect(await hoursAgo()).toEqual([24, 24])
  // A gateway of a release before whose clock was ahead.
  await database.db.pool.query(`UPDATE api_keys SET last_used_at = now() + interval '1 day' WHERE id = $1`, [one.id])
  await touch([one.id, 3_600_000])
  expect(await hoursAgo()).toEqual([1, 24])
})
