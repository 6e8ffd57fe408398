import type { Role } from '@workflow-service/contract'
import { type AuditPrincipal, changedFields, recordAuditEvent } from './audit-events.ts'
import { type Database, runStatement } from './client.ts'
import { isUniqueViolation } from './database-unavailable.ts'
import { foldCase } from './fold-case.ts'
import { inTransaction } from './in-transaction.ts'
import { createSignIn, type NewSignIn } from './sign-ins.ts'

/** An organization in which a person has a role. */
export interface Membership {
  readonly id: string
  readonly name: string
  readonly isSuspended: boolean
  readonly role: Role
  readonly userId: string
}

/** A person who can sign in. */
export interface Account {
  readonly id: string
  readonly email: string
  readonly name: string
  /** Null: signs in with OpenID Connect only. */
  readonly passwordHash: string | null
  readonly hasOidc: boolean
  /** By name; those in which the person has no role are left out. */
  readonly organizations: readonly Membership[]
}

/** The person of a request, with the id of the request. */
export interface AuditedRequest {
  readonly principal: AuditPrincipal & { readonly accountId: string; readonly signInId: string; readonly email: string }
  readonly requestId: string
}

/** Where a request of a person who is not signed in comes from. */
export interface VisitorRequest {
  readonly principal: { readonly address: string; readonly userAgent: string | null }
  readonly requestId: string
}

const SELECT_ACCOUNT = `
  SELECT a.id, a.email, a.name, a.password_hash AS "passwordHash", a.oidc_subject IS NOT NULL AS "hasOidc",
    coalesce((
      SELECT json_agg(json_build_object('id', o.id, 'name', o.name, 'isSuspended', o.is_suspended, 'role', u.role,
        'userId', u.id) ORDER BY o.name, o.id)
      FROM users u JOIN organizations o ON o.id = u.organization_id AND o.deleted_at IS NULL
      WHERE u.account_id = a.id AND u.role IS NOT NULL AND u.deactivated_at IS NULL
    ), '[]') AS organizations
  FROM accounts a`
const FIND_BY_ID = { name: 'find_account', text: `${SELECT_ACCOUNT} WHERE a.id = $1 AND a.disabled_at IS NULL` }
const FIND_BY_EMAIL = {
  name: 'find_account_by_email',
  text: `${SELECT_ACCOUNT} WHERE a.email_key = $1 AND a.disabled_at IS NULL`,
}
const FIND_BY_OIDC = {
  name: 'find_account_by_oidc',
  text: `${SELECT_ACCOUNT} WHERE a.oidc_issuer = $1 AND a.oidc_subject = $2 AND a.disabled_at IS NULL`,
}

export async function findAccountById(db: Pick<Database, 'pool'>, id: string): Promise<Account | undefined> {
  return (await runStatement<Account>(db, FIND_BY_ID, [id])).rows[0]
}

/** Finds an account by its email address, ignoring case. */
export async function findAccountByEmail(db: Pick<Database, 'pool'>, email: string): Promise<Account | undefined> {
  return (await runStatement<Account>(db, FIND_BY_EMAIL, [foldCase(email)])).rows[0]
}

/** Finds an account by its identity at an OpenID Connect provider. */
export async function findAccountByOidc(
  db: Pick<Database, 'pool'>,
  issuer: string,
  subject: string,
): Promise<Account | undefined> {
  return (await runStatement<Account>(db, FIND_BY_OIDC, [issuer, subject])).rows[0]
}

/** Whether any account exists. Without one, a setup link makes the first owner. */
export async function hasAccounts(db: Pick<Database, 'pool'>): Promise<boolean> {
  const { rows } = await db.pool.query<{ exists: boolean }>('SELECT EXISTS (SELECT FROM accounts)')
  return rows[0]?.exists ?? false
}

/** Signs a person in to an organization, and returns the token for the cookie. */
export async function signIn(
  db: Database,
  account: Pick<Account, 'id' | 'name'>,
  membership: Pick<Membership, 'id' | 'userId'>,
  method: NewSignIn['method'],
  { principal: { address, userAgent }, requestId }: VisitorRequest,
): Promise<string> {
  return await inTransaction(db, async (client) => {
    await client.query('UPDATE accounts SET last_signed_in_at = now() WHERE id = $1', [account.id])
    const { id: organizationId, userId } = membership
    await recordAuditEvent(client, {
      principal: { organizationId, userId, name: account.name, address },
      action: 'account.signed_in',
      target: { kind: 'account', id: account.id, name: account.name },
      changes: [{ field: 'method', old: null, new: method }],
      requestId,
    })
    return await createSignIn(client, { accountId: account.id, organizationId, method, address, userAgent })
  })
}

/** Records a failed sign-in in each organization of the account. The address that was typed is not recorded: it may be a password. */
export async function recordFailedSignIn(
  db: Pick<Database, 'pool'>,
  account: Pick<Account, 'id' | 'name' | 'organizations'> | undefined,
  { principal: { address }, requestId }: VisitorRequest,
): Promise<void> {
  const organizations = account?.organizations.map(({ id }) => id) ?? []
  for (const organizationId of organizations.length > 0 ? organizations : [null]) {
    await recordAuditEvent(db.pool, {
      actor: { kind: 'stranger', name: 'not signed in' },
      organizationId,
      address,
      action: 'account.sign_in_failed',
      ...(account ? { target: { kind: 'account', id: account.id, name: account.name } } : {}),
      requestId,
    })
  }
}

/** Changes name and email address of the person, also as a user of each organization. */
export async function saveAccount(
  db: Database,
  values: { name: string; email: string },
  { principal, requestId }: AuditedRequest,
): Promise<'saved' | 'email_taken'> {
  const { accountId } = principal
  try {
    await inTransaction(db, async (client) => {
      await client.query('UPDATE accounts SET name = $2, email = $3, email_key = $4 WHERE id = $1', [
        accountId,
        values.name,
        values.email,
        foldCase(values.email),
      ])
      if (values.email !== principal.email) {
        await client.query(
          `UPDATE organizations SET users_version = gen_random_uuid()::text
           WHERE id IN (SELECT organization_id FROM users WHERE account_id = $1 ORDER BY organization_id)`,
          [accountId],
        )
        await client.query('UPDATE users SET email = $2 WHERE account_id = $1', [accountId, values.email])
      }
      const { name, email } = principal
      await recordAuditEvent(client, {
        principal,
        action: 'account.saved',
        target: { kind: 'account', id: accountId, name: values.name },
        changes: changedFields({ name, email }, values),
        requestId,
      })
    })
    return 'saved'
  } catch (error) {
    if (isUniqueViolation(error)) return 'email_taken'
    throw error
  }
}

/** Replaces the password, and ends all sign-ins of the account except the one of the request. */
export async function changePassword(
  db: Database,
  passwordHash: string,
  { principal, requestId }: AuditedRequest,
): Promise<void> {
  const { accountId, signInId, name } = principal
  await inTransaction(db, async (client) => {
    await client.query('UPDATE accounts SET password_hash = $2, password_changed_at = now() WHERE id = $1', [
      accountId,
      passwordHash,
    ])
    await client.query('DELETE FROM sign_ins WHERE account_id = $1 AND id <> $2', [accountId, signInId])
    await client.query(
      `UPDATE one_time_links SET revoked_at = now()
       WHERE user_id IN (SELECT id FROM users WHERE account_id = $1) AND kind = 'reset' AND used_at IS NULL AND revoked_at IS NULL`,
      [accountId],
    )
    await recordAuditEvent(client, {
      principal,
      action: 'account.password_changed',
      target: { kind: 'account', id: accountId, name },
      requestId,
    })
  })
}
