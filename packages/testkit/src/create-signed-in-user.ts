import type { Role } from '@workflow-service/contract'
import { createSignIn, foldCase, newId } from '@workflow-service/database'
import type { ClientBase, Pool } from 'pg'

/** A person of an organization, signed in to the application. */
export type SignedInTestUser = Awaited<ReturnType<typeof createSignedInUser>>

/** Inserts an account without a password, its user in an existing organization, and a sign-in. */
export async function createSignedInUser(
  client: Pick<ClientBase | Pool, 'query'>,
  organizationId: string,
  {
    role = 'owner',
    name = 'Ada Lovelace',
    email = `${newId()}@acme.test`,
  }: { role?: Role; name?: string; email?: string } = {},
) {
  const [accountId, userId] = [newId(), newId()]
  await client.query(`INSERT INTO accounts (id, email, email_key, name) VALUES ($1, $2, $3, $4)`, [
    accountId,
    email,
    foldCase(email),
    name,
  ])
  const [firstName, ...lastName] = name.split(' ')
  await client.query(
    `INSERT INTO users (id, organization_id, email, first_name, last_name, account_id, role)
     VALUES ($1, $2, $3, $4, $5, $6, $7)`,
    [userId, organizationId, email, firstName, lastName.join(' '), accountId, role],
  )
  const value = await createSignIn(client, {
    accountId,
    organizationId,
    method: 'password',
    address: '127.0.0.1',
    userAgent: 'a test',
  })
  const cookie = { name: '__Host-session', value }
  return { accountId, userId, cookie, headers: { cookie: `${cookie.name}=${value}` } }
}
