import type { Role } from '@workflow-service/contract'
import type { PoolClient } from 'pg'
import type { VisitorRequest } from './accounts.ts'
import { OPERATOR, recordAuditEvent } from './audit-events.ts'
import type { Database } from './client.ts'
import { isUniqueViolation } from './database-unavailable.ts'
import { foldCase } from './fold-case.ts'
import { newId } from './ids.ts'
import { inTransaction } from './in-transaction.ts'
import { hashToken, newToken } from './sign-ins.ts'
import { inUsersTransaction, LINK_HOURS } from './users.ts'

/** A link that can be used, and what it is for. */
export interface OneTimeLink {
  readonly kind: 'setup' | 'invitation' | 'reset'
  /** Null: setup creates the organization. */
  readonly organizationId: string | null
  readonly organizationName: string | null
  /** The user that the link is for; null for setup. */
  readonly user: { readonly id: string; readonly email: string; readonly name: string; readonly role: Role } | null
  readonly accountId: string | null
  readonly expiresAt: Date
}

const IS_OPEN = 'used_at IS NULL AND revoked_at IS NULL AND expires_at > now()'

/**
 * Makes the link with which a person becomes the first owner of an organization (null: of a new one). Returns its token, which goes
 * into the fragment of `{APP_URL}/setup#…`.
 */
export async function createSetupLink(db: Database, organizationId: string | null): Promise<string> {
  const token = newToken()
  await inTransaction(db, async (client) => {
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
export async function findOneTimeLink(db: Pick<Database, 'pool'>, token: string): Promise<OneTimeLink | undefined> {
  const { rows } = await db.pool.query<OneTimeLink>(
    `SELECT l.kind, l.organization_id AS "organizationId", o.name AS "organizationName", l.expires_at AS "expiresAt",
       u.account_id AS "accountId",
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

/** Uses a link up. Of several attempts at the same time, one succeeds. */
async function consumeLink(client: PoolClient, token: string): Promise<boolean> {
  const { rowCount } = await client.query(
    `UPDATE one_time_links SET used_at = now() WHERE token_sha256 = $1 AND ${IS_OPEN}`,
    [hashToken(token)],
  )
  return rowCount === 1
}

/** A person who is new, or who has an account already (whose password or identity was checked). */
export type LinkPerson = { readonly accountId: string } | NewAccount

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

/** Why a link was not used: it cannot be used any more, or the person got an account or became a user meanwhile. */
type NotUsed = undefined | 'email_taken'

async function orEmailTaken<Result>(work: Promise<Result>): Promise<Result | 'email_taken'> {
  try {
    return await work
  } catch (error) {
    if (!isUniqueViolation(error)) throw error
    return 'email_taken'
  }
}

/** Uses a setup link: makes the person an owner of its organization, or of a new one. Other open links for a new organization end. */
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
    if (!(await consumeLink(client, token))) return undefined
    if (link.organizationId === null) {
      await client.query('INSERT INTO organizations (id, name) VALUES ($1, $2)', [organizationId, organizationName])
      await client.query(
        `UPDATE one_time_links SET revoked_at = now() WHERE organization_id IS NULL AND kind = 'setup' AND ${IS_OPEN}`,
      )
    }
    const { accountId, name } = await ensureAccount(client, person)
    const { rows } = await client.query<{ id: string }>(
      `INSERT INTO users (id, organization_id, email, first_name, account_id, role) VALUES ($1, $2, $3, $4, $5, 'owner')
       ON CONFLICT (organization_id, email) DO UPDATE SET account_id = $5, role = 'owner', deactivated_at = NULL
       RETURNING id`,
      [newId(), organizationId, person.email, name, accountId],
    )
    const used = { accountId, userId: rows[0]!.id, organizationId, name }
    const by = { principal: { ...used, address }, requestId }
    const target = { kind: 'organization', id: organizationId, name: link.organizationName ?? organizationName }
    if (link.organizationId === null) await recordAuditEvent(client, { ...by, action: 'organization.created', target })
    await recordAuditEvent(client, { ...by, action: 'setup.completed', target })
    return used
  }
  return await orEmailTaken(
    link.organizationId === null ? inTransaction(db, work) : inUsersTransaction(db, link.organizationId, work),
  )
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
  return await orEmailTaken(inUsersTransaction(db, organizationId, work))
}

async function consumeInvitation(client: PoolClient, userId: string): Promise<boolean> {
  const { rowCount } = await client.query(
    `UPDATE one_time_links SET used_at = now() WHERE user_id = $1 AND kind = 'invitation' AND ${IS_OPEN}`,
    [userId],
  )
  return rowCount !== 0
}

/** Sets a new password with a reset link, and ends all sign-ins of the account. Resolves to undefined if the link cannot be used. */
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
    if (!(await consumeLink(client, token))) return undefined
    const { rows } = await client.query<{ name: string }>(
      'UPDATE accounts SET password_hash = $2, password_changed_at = now() WHERE id = $1 RETURNING name',
      [accountId, passwordHash],
    )
    await client.query('DELETE FROM sign_ins WHERE account_id = $1', [accountId])
    const used = { accountId, userId: user.id, organizationId, name: rows[0]?.name ?? user.name }
    await recordAuditEvent(client, {
      principal: { ...used, address },
      action: 'account.password_changed',
      target: { kind: 'account', id: accountId, name: used.name },
      changes: [{ field: 'link', old: null, new: 'reset' }],
      requestId,
    })
    return used
  })
}

/** An open invitation of an email address. The addresses are compared ignoring case. */
export async function findInvitation(
  db: Pick<Database, 'pool'>,
  email: string,
): Promise<Pick<OneTimeLink, 'organizationId' | 'user'> | undefined> {
  const { rows } = await db.pool.query<{ organizationId: string; id: string; email: string; role: Role; name: string }>(
    `SELECT u.organization_id AS "organizationId", u.id, u.email, u.role, trim(u.first_name || ' ' || u.last_name) AS name
     FROM one_time_links l JOIN users u ON u.id = l.user_id
     JOIN organizations o ON o.id = u.organization_id AND o.deleted_at IS NULL
     WHERE l.kind = 'invitation' AND ${IS_OPEN} AND lower(u.email) = lower($1)
       AND u.account_id IS NULL AND u.role IS NOT NULL AND u.deactivated_at IS NULL
     ORDER BY l.created_at DESC LIMIT 5`,
    [email],
  )
  const found = rows.find((row) => foldCase(row.email) === foldCase(email))
  if (!found) return undefined
  const { organizationId, ...user } = found
  return { organizationId, user }
}

async function ensureAccount(client: PoolClient, person: LinkPerson): Promise<{ accountId: string; name: string }> {
  if ('accountId' in person) {
    const { rows } = await client.query<{ name: string }>('SELECT name FROM accounts WHERE id = $1', [person.accountId])
    return { accountId: person.accountId, name: rows[0]?.name ?? '' }
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
