import { expect, test } from '@jest/globals'
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
  const owner = (await storage.completeSetup(db, setup, link, ada, 'Acme', visitor)) as storage.UsedLink
  expect(await storage.hasAccounts(db)).toBe(true)
  await storage.findAccountById(db, owner.accountId)
  await storage.findAccountByOidc(db, 'i', 's')
  const account = (await storage.findAccountByEmail(db, 'ADA@acme.test'))!
  await storage.recordFailedSignIn(db, account, visitor)
  const token = (await storage.signIn(db, account, account.organizations[0]!, 'password', visitor))!
  await db.pool.query(`UPDATE sign_ins SET last_seen_at = now() - interval '1 hour' WHERE account_id = $1`, [
    account.id,
  ])
  const user = (await storage.findSignedInUser(db, token))!
  const request = { principal: { ...user, address: null }, requestId: 'r' }
  await storage.saveAccount(db, { name: 'Ada L.' }, request)
  await storage.changePassword(db, 'y', request)
  await storage.confirmSignIn(db, request)
  await storage.switchOrganization(db, user.organizationId, request)
  await storage.listSignIns(db, user)

  const id = storage.newId()
  await storage.createUser(db, { id, email: 'bo@acme.test', first_name: '', last_name: '', role: 'member' }, request)
  const invitation = await storage.createUserLink(db, id, { kind: 'invitation' }, allow, request)
  const invited = (await storage.findInvitation(db, 'BO@acme.test'))!
  const bo = { name: 'Bo', email: 'bo@acme.test', passwordHash: 'x' }
  await storage.acceptInvitation(db, (invitation as { token: string }).token, invited, bo, visitor)
  const reset = (await storage.createUserLink(db, id, { kind: 'reset' }, allow, request)) as { token: string }
  await storage.acceptReset(db, reset.token, (await storage.findOneTimeLink(db, reset.token))!, 'z', visitor)
  const change = { kind: 'email', email: 'bo@globex.test' } as const
  const email = (await storage.createUserLink(db, id, change, allow, request)) as { token: string }
  const emailLink = (await storage.findOneTimeLink(db, email.token))!
  await storage.acceptEmail(db, email.token, emailLink, { accountId: emailLink.accountId!, passwordHash: 'z' }, visitor)
  await storage.findUserById(db, user.organizationId, id)
  await storage.findUserByEmail(db, user.organizationId, 'BO@globex.test')
  await storage.findAccountByUser(db, id)
  const [, listed] = await storage.listUsers(db, user.organizationId, { limit: 10 })
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
