import { expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import {
  acceptEmail,
  acceptInvitation,
  acceptReset,
  changePassword,
  completeSetup,
  confirmSignIn,
  createSetupLink,
  createUser,
  createUserLink,
  deleteEndedSignIns,
  deleteOrganization,
  deleteOrganizationRows,
  deleteUser,
  endSignIn,
  findAccountByEmail,
  findAccountById,
  findAccountByOidc,
  findAccountByUser,
  findInvitation,
  findOneTimeLink,
  findSignedInUser,
  findUserByEmail,
  findUserById,
  hasAccounts,
  listAuditEvents,
  listSignIns,
  listUsers,
  newId,
  readOrganization,
  recordFailedSignIn,
  saveOrganization,
  saveAccount,
  saveUser,
  signIn,
  signUserOut,
  switchOrganization,
  type UsedLink,
} from '../src/index.ts'

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

  const setup = await createSetupLink(db, null)
  const link = (await findOneTimeLink(db, setup))!
  const ada = { name: 'Ada', email: 'ada@acme.test', passwordHash: 'x', oidc: { issuer: 'i', subject: 's' } }
  const owner = (await completeSetup(db, setup, link, ada, 'Acme', visitor)) as UsedLink
  expect(await hasAccounts(db)).toBe(true)
  await findAccountById(db, owner.accountId)
  await findAccountByOidc(db, 'i', 's')
  const account = (await findAccountByEmail(db, 'ADA@acme.test'))!
  await recordFailedSignIn(db, account, visitor)
  const token = (await signIn(db, account, account.organizations[0]!, 'password', visitor))!
  await db.pool.query(`UPDATE sign_ins SET last_seen_at = now() - interval '1 hour' WHERE account_id = $1`, [
    account.id,
  ])
  const user = (await findSignedInUser(db, token))!
  const request = { principal: { ...user, address: null }, requestId: 'r' }
  await saveAccount(db, { name: 'Ada L.' }, request)
  await changePassword(db, 'y', request)
  await confirmSignIn(db, request)
  await switchOrganization(db, user.organizationId, request)
  await listSignIns(db, user)

  const id = newId()
  await createUser(db, { id, email: 'bo@acme.test', first_name: '', last_name: '', role: 'member' }, request)
  const invitation = await createUserLink(db, id, { kind: 'invitation' }, allow, request)
  const invited = (await findInvitation(db, 'BO@acme.test'))!
  const bo = { name: 'Bo', email: 'bo@acme.test', passwordHash: 'x' }
  await acceptInvitation(db, (invitation as { token: string }).token, invited, bo, visitor)
  const reset = (await createUserLink(db, id, { kind: 'reset' }, allow, request)) as { token: string }
  await acceptReset(db, reset.token, (await findOneTimeLink(db, reset.token))!, 'z', visitor)
  const change = { kind: 'email', email: 'bo@globex.test' } as const
  const email = (await createUserLink(db, id, change, allow, request)) as { token: string }
  const emailLink = (await findOneTimeLink(db, email.token))!
  await acceptEmail(db, email.token, emailLink, { accountId: emailLink.accountId!, passwordHash: 'z' }, visitor)
  await findUserById(db, user.organizationId, id)
  await findUserByEmail(db, user.organizationId, 'BO@globex.test')
  await findAccountByUser(db, id)
  const [, listed] = await listUsers(db, user.organizationId, { limit: 10 })
  await saveUser(db, id, { role: 'admin', version: listed!.version }, allow, request)
  await signUserOut(db, id, allow, request)
  await deleteUser(db, id, allow, request)
  for (const query of [{ action: 'user.' }, { actorId: user.userId }, { targetId: id }, { since: new Date(0) }]) {
    await listAuditEvents(db, user.organizationId, { limit: 10, ...query })
  }

  const { version } = (await readOrganization(db, user.organizationId))!
  await saveOrganization(db, { name: 'Globex', version }, request)
  await endSignIn(db, user.signInId, request)
  await deleteEndedSignIns(db, 10)
  await deleteOrganization(db, request)
  while (await deleteOrganizationRows(db));
  expect(await fullScans()).toEqual(before)
})
