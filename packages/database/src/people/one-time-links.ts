import type { Role } from '@workflow-service/contract'
import type { PoolClient } from 'pg'
import { type Database, type Db, foldCase, inTransaction, isUniqueViolation, newId } from '../connection/index.ts'
import { OPERATOR, recordAuditEvent } from '../organizations/index.ts'
import {
  lockAccount,
  mayChangeAccount,
  recordAccountEvent,
  revokeLinks,
  setPassword,
  type VisitorRequest,
} from './accounts.ts'
import { hashToken, newToken } from './sign-ins.ts'
import { EMAIL_KEY, emailKeyOf, inUsersTransaction, LINK_HOURS } from './users.ts'

/** A link that can be used, and what it is for. */
export interface OneTimeLink {
  readonly kind: 'setup' | 'invitation' | 'reset' | 'email'
  /** Null: setup creates the organization. */
  readonly organizationId: string | null
  readonly organizationName: string | null
  /** The user that the link is for; null for setup. */
  readonly user: { readonly id: string; readonly email: string; readonly name: string; readonly role: Role } | null
  readonly accountId: string | null
  /** The address that the account gets; null unless the link is for that. */
  readonly newEmail: string | null
  readonly expiresAt: Date
}

const IS_OPEN = 'used_at IS NULL AND revoked_at IS NULL AND expires_at > now()'

/** Setup links are made and used one at a time, so that the newest is the only one. */
const SETUP_LOCK = 5_271_906_418

/**
 * Makes the link with which a person becomes an owner of an organization (null: of a new one), and revokes earlier ones. Returns its
 * token, which goes into the fragment of `{APP_URL}/setup#…`.
 */
export async function createSetupLink(db: Database, organizationId: string | null): Promise<string> {
  const token = newToken()
  await inTransaction(db, async (client) => {
    await client.query('SELECT pg_advisory_xact_lock($1)', [SETUP_LOCK])
    await client.query(
      `UPDATE one_time_links SET revoked_at = now() WHERE organization_id ${organizationId === null ? 'IS NULL' : '= $1'} AND kind = 'setup' AND ${IS_OPEN}`,
      organizationId === null ? [] : [organizationId],
    )
    await client.query(
      `INSERT INTO one_time_links (token_sha256, kind, organization_id, role, expires_at)
       VALUES ($1, 'setup', $2, 'owner', now() + interval '${LINK_HOURS.setup} hours')`,
      [hashToken(token), organizationId],
    )
    await recordAuditEvent(client, {
      actor: OPERATOR,
      organizationId,
      action: 'setup.link_created',
    })
  })
  return token
}

/** Reads what a link is for; undefined if it was used, revoked or expired, or if its user may no longer use it. */
export async function findOneTimeLink(db: Db, token: string): Promise<OneTimeLink | undefined> {
  const { rows } = await db.pool.query<OneTimeLink>(
    `SELECT l.kind, l.organization_id AS "organizationId", o.name AS "organizationName", l.expires_at AS "expiresAt",
       u.account_id AS "accountId", l.new_email AS "newEmail",
       CASE WHEN u.id IS NOT NULL THEN json_build_object('id', u.id, 'email', u.email, 'role', u.role,
         'name', trim(u.first_name || ' ' || u.last_name)) END AS "user"
     FROM one_time_links l
     LEFT JOIN organizations o ON o.id = l.organization_id
     LEFT JOIN users u ON u.id = l.user_id
     WHERE l.token_sha256 = $1 AND ${IS_OPEN} AND o.deleted_at IS NULL
       AND (l.kind = 'setup' OR (u.role IS NOT NULL AND u.deactivated_at IS NULL))`,
    [hashToken(token)],
  )
  return rows[0]
}

/** Uses a link up, and resolves to who made it (null: the operator). Of several attempts at the same time, one succeeds. */
async function consumeLink(client: PoolClient, token: string): Promise<{ createdBy: string | null } | undefined> {
  const { rows } = await client.query<{ createdBy: string | null }>(
    `UPDATE one_time_links SET used_at = now() WHERE token_sha256 = $1 AND ${IS_OPEN} RETURNING created_by AS "createdBy"`,
    [hashToken(token)],
  )
  return rows[0]
}

/** A person who is new, or who has an account already (whose password or identity was checked). */
export type LinkPerson = CheckedAccount | NewAccount

/** An account, and the hash of the password that was checked: it must still be the account's when the link is used. */
export interface CheckedAccount {
  readonly accountId: string
  readonly passwordHash: string | null
}

export interface NewAccount {
  readonly name: string
  readonly email: string
  readonly passwordHash: string | null
  readonly oidc?: { readonly issuer: string; readonly subject: string }
}

/** The person and the organization that a link led to, for the sign-in that follows. */
export interface UsedLink {
  readonly accountId: string
  readonly userId: string
  readonly organizationId: string
  readonly name: string
}

/**
 * Why a link was not used: it cannot be used any more (undefined); the person got an account or became a user meanwhile; or the
 * password that was checked was replaced meanwhile.
 */
type NotUsed = undefined | 'email_taken' | 'password_changed'

class PasswordChangedError extends Error {}
class EmailTakenError extends Error {}

/** Resolves to why the work was undone, if it was. */
async function orNotUsed<Result>(work: Promise<Result>): Promise<Result | 'email_taken' | 'password_changed'> {
  try {
    return await work
  } catch (error) {
    if (error instanceof PasswordChangedError) return 'password_changed'
    if (error instanceof EmailTakenError || isUniqueViolation(error)) return 'email_taken'
    throw error
  }
}

/**
 * Uses a setup link: makes the person an owner of its organization, or of a new one. Other open links for that organization, and those
 * for a new one, end.
 */
export async function completeSetup(
  db: Database,
  token: string,
  link: OneTimeLink,
  person: LinkPerson & { readonly email: string },
  organizationName: string,
  { principal: { address }, requestId }: VisitorRequest,
): Promise<UsedLink | NotUsed> {
  const organizationId = link.organizationId ?? newId()
  const work = async (client: PoolClient): Promise<UsedLink | undefined> => {
    await client.query('SELECT pg_advisory_xact_lock($1)', [SETUP_LOCK])
    if (!(await consumeLink(client, token))) return undefined
    await client.query(
      `UPDATE one_time_links SET revoked_at = now()
       WHERE (organization_id IS NULL OR organization_id = $1) AND kind = 'setup' AND ${IS_OPEN}`,
      [organizationId],
    )
    if (link.organizationId === null) {
      await client.query('INSERT INTO organizations (id, name) VALUES ($1, $2)', [organizationId, organizationName])
    }
    const { accountId, name } = await ensureAccount(client, person)
    const used = {
      accountId,
      userId: await makeOwner(client, organizationId, accountId, person.email, name),
      organizationId,
      name,
    }
    const by = { principal: { ...used, address }, requestId }
    const target = { kind: 'organization', id: organizationId, name: link.organizationName ?? organizationName }
    if (link.organizationId === null) await recordAuditEvent(client, { ...by, action: 'organization.created', target })
    await recordAuditEvent(client, { ...by, action: 'setup.completed', target })
    return used
  }
  return await orNotUsed(
    link.organizationId === null ? inTransaction(db, work) : inUsersTransaction(db, link.organizationId, work),
  )
}

/** Makes the account an owner: as the user that it is already, as the user of its address who has no account, or as a new user. */
async function makeOwner(
  client: PoolClient,
  organizationId: string,
  accountId: string,
  email: string,
  name: string,
): Promise<string> {
  const { rows } = await client.query<{ id: string; accountId: string | null }>(
    `SELECT id, account_id AS "accountId" FROM users u
     WHERE organization_id = $1 AND (account_id = $2 OR ${EMAIL_KEY} = $3)
     ORDER BY account_id = $2 DESC NULLS LAST, email = $4 DESC LIMIT 1`,
    [organizationId, accountId, foldCase(email), email],
  )
  const [user] = rows
  if (!user) {
    const id = newId()
    await client.query(
      `INSERT INTO users (id, organization_id, email, email_key, first_name, account_id, role)
       VALUES ($1, $2, $3, $4, $5, $6, 'owner')`,
      [id, organizationId, email, emailKeyOf(email), name, accountId],
    )
    return id
  }
  if (user.accountId !== null && user.accountId !== accountId) throw new EmailTakenError()
  // Another role: see endSignIns() of users.ts.
  await client.query(
    `UPDATE users SET account_id = $2, role = 'owner', deactivated_at = NULL,
       signed_out_at = CASE WHEN role = 'owner' THEN signed_out_at ELSE date_trunc('milliseconds', clock_timestamp()) END
     WHERE id = $1`,
    [user.id, accountId],
  )
  return user.id
}

/**
 * Accepts an invitation as a person who is new or has an account. Without a token, uses the user's open invitation: an OpenID
 * Connect provider has verified the email address.
 */
export async function acceptInvitation(
  db: Database,
  token: string | null,
  link: Pick<OneTimeLink, 'organizationId' | 'user'>,
  person: LinkPerson,
  { principal: { address }, requestId }: VisitorRequest,
): Promise<UsedLink | NotUsed> {
  const { organizationId, user } = link
  if (organizationId === null || !user) return undefined
  const work = async (client: PoolClient): Promise<UsedLink | undefined> => {
    const isUsed = token === null ? await consumeInvitation(client, user.id) : await consumeLink(client, token)
    if (!isUsed) return undefined
    const { accountId, name } = await ensureAccount(client, person)
    const updated = await client.query(
      `UPDATE users SET account_id = $3 WHERE organization_id = $1 AND id = $2
         AND account_id IS NULL AND role IS NOT NULL AND deactivated_at IS NULL`,
      [organizationId, user.id, accountId],
    )
    if (updated.rowCount === 0) throw new Error('A user with an open invitation has an account or no role')
    const used = { accountId, userId: user.id, organizationId, name }
    await recordAuditEvent(client, {
      principal: { ...used, address },
      action: 'link.accepted',
      target: { kind: 'user', id: user.id, name: user.email },
      changes: [{ field: 'kind', old: null, new: 'invitation' }],
      requestId,
    })
    return used
  }
  return await orNotUsed(inUsersTransaction(db, organizationId, work))
}

async function consumeInvitation(client: PoolClient, userId: string): Promise<boolean> {
  const { rowCount } = await client.query(
    `UPDATE one_time_links SET used_at = now() WHERE user_id = $1 AND kind = 'invitation' AND ${IS_OPEN}`,
    [userId],
  )
  return rowCount !== 0
}

/**
 * Sets a new password with a reset link, and ends all sign-ins and links of the account. Resolves to undefined if the link cannot be used:
 * also when its maker may no longer make it, because the person joined another organization.
 */
export async function acceptReset(
  db: Database,
  token: string,
  link: OneTimeLink,
  passwordHash: string,
  { principal: { address }, requestId }: VisitorRequest,
): Promise<UsedLink | undefined> {
  const { organizationId, user, accountId } = link
  if (organizationId === null || !user || accountId === null) return undefined
  return await inTransaction(db, async (client) => {
    const account = await lockAccount(client, accountId)
    const consumed = account && (await consumeLink(client, token))
    if (!consumed || !(await mayChangeAccount(client, accountId, consumed.createdBy, 'reset'))) return undefined
    await setPassword(client, accountId, passwordHash)
    await client.query('DELETE FROM sign_ins WHERE account_id = $1', [accountId])
    await revokeLinks(client, accountId)
    const used = { accountId, userId: user.id, organizationId, name: account.name }
    await recordAccountEvent(
      client,
      accountId,
      { principal: { ...used, address }, requestId },
      {
        action: 'account.password_changed',
        target: { kind: 'account', id: accountId, name: used.name },
        changes: [{ field: 'link', old: null, new: 'reset' }],
      },
    )
    return used
  })
}

/** Gives the account another email address, also as a user of each organization, with a link and the password of the account. */
export async function acceptEmail(
  db: Database,
  token: string,
  link: OneTimeLink,
  { accountId, passwordHash }: CheckedAccount,
  { principal: { address }, requestId }: VisitorRequest,
): Promise<UsedLink | NotUsed> {
  const { organizationId, user, newEmail } = link
  if (organizationId === null || !user || newEmail === null || accountId !== link.accountId) return undefined
  const work = async (client: PoolClient): Promise<UsedLink | undefined> => {
    // Before the account, in the order of their ids, as every change of users does. Joining another one meanwhile revokes the link.
    const { rows } = await client.query<{ id: string }>(
      `SELECT id FROM organizations WHERE id IN (SELECT organization_id FROM users WHERE account_id = $1)
       ORDER BY id FOR NO KEY UPDATE`,
      [accountId],
    )
    const account = await lockAccount(client, accountId)
    const consumed = account && (await consumeLink(client, token))
    if (!consumed || !(await mayChangeAccount(client, accountId, consumed.createdBy, 'email'))) return undefined
    if (account.passwordHash !== passwordHash) throw new PasswordChangedError()
    await client.query('UPDATE accounts SET email = $2, email_key = $3 WHERE id = $1', [
      accountId,
      newEmail,
      foldCase(newEmail),
    ])
    await client.query('UPDATE organizations SET users_version = gen_random_uuid()::text WHERE id = ANY ($1::uuid[])', [
      rows.map(({ id }) => id),
    ])
    await client.query('UPDATE users SET email = $2, email_key = $3, is_duplicate = false WHERE account_id = $1', [
      accountId,
      newEmail,
      emailKeyOf(newEmail),
    ])
    const used = { accountId, userId: user.id, organizationId, name: account.name }
    await recordAccountEvent(
      client,
      accountId,
      { principal: { ...used, address }, requestId },
      {
        action: 'account.saved',
        target: { kind: 'account', id: accountId, name: used.name },
        changes: [{ field: 'email', old: account.email, new: newEmail }],
      },
    )
    return used
  }
  return await orNotUsed(inTransaction(db, work))
}

/** An open invitation of an email address. The addresses are compared ignoring case. */
export async function findInvitation(
  db: Db,
  email: string,
): Promise<Pick<OneTimeLink, 'organizationId' | 'user'> | undefined> {
  const { rows } = await db.pool.query<{ organizationId: string; id: string; email: string; role: Role; name: string }>(
    `SELECT u.organization_id AS "organizationId", u.id, u.email, u.role, trim(u.first_name || ' ' || u.last_name) AS name
     FROM one_time_links l JOIN users u ON u.id = l.user_id
     JOIN organizations o ON o.id = u.organization_id AND o.deleted_at IS NULL
     WHERE l.kind = 'invitation' AND ${IS_OPEN} AND coalesce(u.email_key, lower(u.email)) = $1
       AND u.account_id IS NULL AND u.role IS NOT NULL AND u.deactivated_at IS NULL
     ORDER BY l.created_at DESC LIMIT 1`,
    [foldCase(email)],
  )
  const [found] = rows
  if (!found) return undefined
  const { organizationId, ...user } = found
  return { organizationId, user }
}

/**
 * Adds the account of a new person, or locks the one that joins and ends its other links: their makers may change it in its
 * present organizations only.
 */
async function ensureAccount(client: PoolClient, person: LinkPerson): Promise<{ accountId: string; name: string }> {
  if ('accountId' in person) {
    const { accountId } = person
    const account = await lockAccount(client, accountId)
    if (account?.passwordHash !== person.passwordHash) throw new PasswordChangedError()
    await revokeLinks(client, accountId)
    return { accountId, name: account.name }
  }
  const accountId = newId()
  const { name, email, passwordHash, oidc } = person
  await client.query(
    `INSERT INTO accounts (id, email, email_key, name, password_hash, password_changed_at, oidc_issuer, oidc_subject)
     VALUES ($1, $2, $3, $4, $5, CASE WHEN $5::text IS NOT NULL THEN now() END, $6, $7)`,
    [accountId, email, foldCase(email), name, passwordHash, oidc?.issuer ?? null, oidc?.subject ?? null],
  )
  return { accountId, name }
}
