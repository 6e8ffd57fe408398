import type { AppUserOut } from '@workflow-service/contract'
import type { PoolClient } from 'pg'
import {
  type Database,
  datesToIso,
  type Db,
  foldCase,
  inTransaction,
  isUniqueViolation,
  type Queryable,
  type RowOf,
  versionOf,
} from '../connection/index.ts'
import {
  assertQuotas,
  type AuditPrincipal,
  changedFields,
  type LimitedByQuotas,
  recordAuditEvent,
} from '../organizations/index.ts'
import { lockAccount, mayChangeAccount, recordAccountEvent, revokeLinks } from './accounts.ts'
import { hashToken, newToken } from './sign-ins.ts'

/** The values that a person edits. */
export interface UserValues extends Pick<AppUserOut, 'first_name' | 'last_name' | 'role'> {
  readonly is_deactivated: boolean
}

interface StoredUser extends AppUserOut, UserValues {
  readonly account_id: string | null
  /** See migrations 014 and 019. */
  readonly is_duplicate: boolean
}

/** Throws to refuse a change of this user to these values; undefined values: another change. Called with the user's row locked. */
export type CheckUserChange = (user: Pick<AppUserOut, 'role'>, next?: Pick<AppUserOut, 'role'>) => void

type UserRow = RowOf<Omit<StoredUser, 'version'>>

interface Request {
  readonly principal: AuditPrincipal
  readonly requestId: string | null
}

/** What the unique index of users compares: the address, its case folded (see migration 019). */
export const EMAIL_KEY = 'coalesce(email_key, lower(email))'

/** Returns the value of `email_key` for an address: folded by `foldCase`, or null where lower() does the same. */
export function emailKeyOf(email: string): string | null {
  const folded = foldCase(email)
  return folded === email.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase()) ? null : folded
}

const SELECT_USER = `
  SELECT u.id, u.email, u.first_name, u.last_name, u.role, u.deactivated_at IS NOT NULL AS is_deactivated, u.account_id,
    u.is_duplicate,
    CASE
      WHEN u.deactivated_at IS NOT NULL THEN 'deactivated'
      WHEN u.role IS NULL THEN 'no_access'
      WHEN u.account_id IS NOT NULL THEN 'active'
      WHEN EXISTS (
        SELECT FROM one_time_links l WHERE l.user_id = u.id AND l.kind = 'invitation'
          AND l.used_at IS NULL AND l.revoked_at IS NULL AND l.expires_at > now()
      ) THEN 'invited'
      ELSE 'no_access'
    END AS state,
    greatest(a.last_signed_in_at, (
      SELECT max(s.last_seen_at) FROM sign_ins s WHERE s.account_id = u.account_id AND s.organization_id = u.organization_id
    )) AS last_seen_at,
    (
      SELECT count(*)::int FROM workflow_users wu JOIN workflows w ON w.id = wu.workflow_id AND w.deleted_at IS NULL
      WHERE wu.user_id = u.id
    ) AS workflow_count
  FROM users u LEFT JOIN accounts a ON a.id = u.account_id`

/** Lists the users of an organization by email address, those after the address `after`. */
export async function listUsers(
  db: Db,
  organizationId: string,
  { limit, after = '' }: { limit: number; after?: string | undefined },
): Promise<AppUserOut[]> {
  const { rows } = await db.pool.query<UserRow>(
    `${SELECT_USER} WHERE u.organization_id = $1 AND u.email > $2 ORDER BY u.email LIMIT $3`,
    [organizationId, after, limit],
  )
  return rows.map((row) => toOut(toStored(row)))
}

/** Reads one user; undefined if the organization has no such user. */
async function findUser(db: Queryable, organizationId: string, userId: string): Promise<StoredUser | undefined> {
  const { rows } = await db.query<UserRow>(`${SELECT_USER} WHERE u.organization_id = $1 AND u.id = $2`, [
    organizationId,
    userId,
  ])
  return rows[0] && toStored(rows[0])
}

/** Reads one user for the operator; undefined if the organization has no such user. */
export async function findUserById(db: Db, organizationId: string, userId: string): Promise<AppUserOut | undefined> {
  const user = await findUser(db.pool, organizationId, userId)
  return user && toOut(user)
}

/** Reads the user of this email address: exactly this one, or else the only one that differs in case. */
export async function findUserByEmail(db: Db, organizationId: string, email: string): Promise<AppUserOut | undefined> {
  const { rows } = await db.pool.query<UserRow>(
    `${SELECT_USER} WHERE u.organization_id = $1 AND coalesce(u.email_key, lower(u.email)) = $2 ORDER BY u.email = $3 DESC LIMIT 2`,
    [organizationId, foldCase(email), email],
  )
  const [first, second] = rows
  return first && (first.email === email || !second) ? toOut(toStored(first)) : undefined
}

/**
 * Writes `email_key` where it is missing or of an earlier address: for rows from before migration 019, and those that a service of the
 * previous release writes during an upgrade. A user whose address turns out to differ from another user's in case only becomes a
 * duplicate, as in migration 014. Resolves to how many rows it has changed.
 */
export async function foldEmails(db: Db): Promise<number> {
  const { rows } = await db.pool.query<{ id: string; email: string; emailKey: string | null }>(
    `SELECT id, email, email_key AS "emailKey" FROM users
     WHERE email_key IS NOT NULL OR octet_length(email) <> char_length(email)
     ORDER BY account_id IS NULL, role IS NULL, id`,
  )
  const stale = rows.filter(({ email, emailKey }) => emailKeyOf(email) !== emailKey)
  for (const { id, email } of stale) {
    const save = async (isDuplicate: boolean): Promise<unknown> =>
      await db.pool.query(
        'UPDATE users SET email_key = $3, is_duplicate = is_duplicate OR $4 WHERE id = $1 AND email = $2',
        [id, email, emailKeyOf(email), isDuplicate],
      )
    await save(false).catch((error: unknown) => {
      if (!isUniqueViolation(error)) throw error
      return save(true)
    })
  }
  return stale.length
}

/** Lists users whose addresses differ from another user's in case only, since before the unique indexes: the first 10. */
export async function listDuplicateUsers(db: Db): Promise<{ email: string; organizationName: string }[]> {
  const { rows } = await db.pool.query<{ email: string; organizationName: string }>(
    `SELECT u.email, o.name AS "organizationName" FROM users u
     JOIN organizations o ON o.id = u.organization_id AND o.deleted_at IS NULL
     WHERE u.is_duplicate ORDER BY o.name, u.email LIMIT 10`,
  )
  return rows
}

function toStored(row: UserRow): StoredUser {
  const user = datesToIso(row)
  return { ...user, version: versionOfUser(user) }
}

function toOut({
  is_deactivated: _isDeactivated,
  account_id: _accountId,
  is_duplicate: _isDuplicate,
  ...user
}: StoredUser): AppUserOut {
  return user
}

function versionOfUser({ first_name, last_name, role, is_deactivated }: UserValues): string {
  return versionOf([first_name, last_name, role, is_deactivated])
}

/**
 * Runs a change of an organization's users. All of them are serialized by the organization's row, which also tells the gateways
 * that the users in workflow documents changed. Resolves to undefined if the organization does not exist.
 */
export async function inUsersTransaction<Result>(
  db: Database,
  organizationId: string,
  work: (client: PoolClient) => Promise<Result>,
): Promise<Result | undefined> {
  return await inTransaction(db, async (client) => {
    const { rowCount } = await client.query(
      'UPDATE organizations SET users_version = gen_random_uuid()::text WHERE id = $1 AND deleted_at IS NULL',
      [organizationId],
    )
    return rowCount === 0 ? undefined : await work(client)
  })
}

/** The values of a new user. */
type NewUser = Pick<AppUserOut, 'id' | 'email' | 'first_name' | 'last_name' | 'role'>

/** Adds a user. The same request again resolves to the same user. */
export async function createUser(
  db: Database,
  { id, ...values }: NewUser,
  request: Request & LimitedByQuotas,
): Promise<AppUserOut | 'email_taken' | 'id_taken'> {
  const { principal, requestId } = request
  const { organizationId } = principal
  const { email, first_name, last_name, role } = values
  try {
    const created = await inUsersTransaction(db, organizationId, async (client) => {
      const stored = await findUser(client, organizationId, id)
      if (stored) return changedFields<typeof values>(stored, values).length === 0 ? stored : undefined
      await assertQuotas(client, request)
      await client.query(
        `INSERT INTO users (id, organization_id, email, email_key, first_name, last_name, role)
         VALUES ($1, $2, $3, $4, $5, $6, $7)`,
        [id, organizationId, email, emailKeyOf(email), first_name, last_name, role],
      )
      await recordAuditEvent(client, {
        principal,
        action: 'user.created',
        target: { kind: 'user', id, name: email },
        changes: changedFields({}, values),
        requestId,
      })
      return await findUser(client, organizationId, id)
    })
    return created ? toOut(created) : 'id_taken'
  } catch (error) {
    if (!isUniqueViolation(error)) throw error
    return (error as { constraint?: string }).constraint === 'users_pkey' ? 'id_taken' : 'email_taken'
  }
}

/**
 * Changes a user. A changed role and a deactivation end the person's sign-ins to the organization, and its links.
 * `changed`: `version` is not that of the stored values.
 */
export async function saveUser(
  db: Database,
  userId: string,
  { version, ...change }: Partial<UserValues> & { version: string },
  check: CheckUserChange,
  { principal, requestId }: Request,
): Promise<{ kind: 'saved' | 'changed_meanwhile'; user: AppUserOut } | 'last_owner' | undefined> {
  const { organizationId } = principal
  return await inUsersTransaction(db, organizationId, async (client) => {
    const stored = await findUser(client, organizationId, userId)
    if (!stored) return undefined
    const { first_name, last_name, role, is_deactivated } = { ...stored, ...change }
    const next: UserValues = { first_name, last_name, role, is_deactivated }
    check(stored, next)
    // Saved already: the request is repeated, or another person made the same change.
    if (versionOfUser(next) === stored.version) return { kind: 'saved', user: toOut(stored) }
    if (version !== stored.version) return { kind: 'changed_meanwhile', user: toOut(stored) }
    const staysOwner = role === 'owner' && !is_deactivated
    if (!staysOwner && (await isLastOwner(client, organizationId, stored))) return 'last_owner'
    await client.query(
      `UPDATE users SET first_name = $3, last_name = $4, role = $5,
         deactivated_at = CASE WHEN $6 THEN coalesce(deactivated_at, now()) END
       WHERE organization_id = $1 AND id = $2`,
      [organizationId, userId, first_name, last_name, role, is_deactivated],
    )
    if (role !== stored.role || is_deactivated !== stored.is_deactivated)
      await endAccess(client, organizationId, stored)
    await recordAuditEvent(client, {
      principal,
      action: 'user.saved',
      target: { kind: 'user', id: userId, name: stored.email },
      changes: changedFields<UserValues>(stored, next),
      requestId,
    })
    return { kind: 'saved', user: toOut((await findUser(client, organizationId, userId))!) }
  })
}

/** Removes a user, and the account if no other organization has it. Resolves to undefined if there is no such user. */
export async function deleteUser(
  db: Database,
  userId: string,
  check: CheckUserChange,
  { principal, requestId }: Request,
): Promise<'removed' | 'last_owner' | undefined> {
  const { organizationId } = principal
  return await inUsersTransaction(db, organizationId, async (client) => {
    const stored = await findUser(client, organizationId, userId)
    if (!stored) return undefined
    check(stored)
    if (await isLastOwner(client, organizationId, stored)) return 'last_owner'
    await endAccess(client, organizationId, stored)
    await client.query('DELETE FROM users WHERE organization_id = $1 AND id = $2', [organizationId, userId])
    // Of several users whose addresses differed in case only before the unique index existed, the next one takes its place.
    await client.query(
      `UPDATE users SET is_duplicate = false WHERE NOT $3 AND id = (
         SELECT id FROM users WHERE organization_id = $1 AND ${EMAIL_KEY} = $2 AND is_duplicate ORDER BY id LIMIT 1)`,
      [organizationId, foldCase(stored.email), stored.is_duplicate],
    )
    await client.query('DELETE FROM accounts WHERE id = $1 AND NOT EXISTS (SELECT FROM users WHERE account_id = $1)', [
      stored.account_id,
    ])
    await recordAuditEvent(client, {
      principal,
      action: 'user.removed',
      target: { kind: 'user', id: userId, name: stored.email },
      changes: [
        { field: 'email', old: stored.email, new: null },
        { field: 'role', old: stored.role, new: null },
      ],
      requestId,
    })
    return 'removed'
  })
}

/** Ends the person's sign-ins to the organization. Resolves to undefined if there is no such user. */
export async function signUserOut(
  db: Database,
  userId: string,
  check: CheckUserChange,
  { principal, requestId }: Request,
): Promise<'signed_out' | undefined> {
  const { organizationId } = principal
  return await inUsersTransaction(db, organizationId, async (client) => {
    const stored = await findUser(client, organizationId, userId)
    if (!stored) return undefined
    check(stored)
    await endSignIns(client, organizationId, stored)
    const target = { kind: 'user', id: userId, name: stored.email }
    await recordAuditEvent(client, { principal, action: 'user.signed_out', target, requestId })
    return 'signed_out'
  })
}

/** How long a link of each kind can be used. */
export const LINK_HOURS = { setup: 72, invitation: 72, reset: 1, email: 72 } as const

/** The link to make. `email`: gives the account another address. */
export type NewUserLink = { readonly kind: 'invitation' | 'reset' } | { readonly kind: 'email'; readonly email: string }

/**
 * Makes a link for a user, and revokes an earlier one of its kind. `not_possible`: invitations are for users with a role and without an
 * account; the others are for active people whose account the maker may change (see `mayChangeAccount`), and `email` for those
 * who have a password, which the bearer needs. A link that changes an account is in the audit log of each of its organizations.
 */
export async function createUserLink(
  db: Database,
  userId: string,
  link: NewUserLink,
  check: CheckUserChange,
  { principal, requestId }: Request,
): Promise<{ token: string; expiresAt: Date } | 'not_possible' | 'email_taken' | undefined> {
  const { organizationId } = principal
  const { kind } = link
  return await inUsersTransaction(db, organizationId, async (client) => {
    const stored = await findUser(client, organizationId, userId)
    if (!stored) return undefined
    check(stored)
    const { account_id: accountId, role, is_deactivated: isDeactivated } = stored
    if (role === null || isDeactivated || (kind === 'invitation') !== (accountId === null)) return 'not_possible'
    if (kind !== 'invitation' && accountId !== null) {
      const account = await lockAccount(client, accountId)
      if (!account || (kind === 'email' && account.passwordHash === null)) return 'not_possible'
      if (!(await mayChangeAccount(client, accountId, principal.userId, kind))) return 'not_possible'
    }
    // Only among the organization's own users, whom the maker sees: accounts of others are not revealed before the link is used.
    if (link.kind === 'email' && (await hasOtherUser(client, organizationId, userId, link.email))) return 'email_taken'
    // An account has at most one of a kind, whichever organization it was made in.
    await client.query(
      `UPDATE one_time_links SET revoked_at = now()
       WHERE user_id IN (SELECT $1::uuid UNION SELECT id FROM users WHERE account_id = $3) AND kind = $2
         AND used_at IS NULL AND revoked_at IS NULL`,
      [userId, kind, accountId],
    )
    const token = newToken()
    const newEmail = link.kind === 'email' ? link.email : null
    const { rows } = await client.query<{ expiresAt: Date }>(
      `INSERT INTO one_time_links (token_sha256, kind, organization_id, user_id, role, created_by, expires_at, new_email)
       VALUES ($1, $2, $3, $4, $5, $6, now() + $7 * interval '1 hour', $8) RETURNING expires_at AS "expiresAt"`,
      [hashToken(token), kind, organizationId, userId, role, principal.userId, LINK_HOURS[kind], newEmail],
    )
    const event = {
      action: 'user.link_created',
      target: { kind: 'user', id: userId, name: stored.email },
      changes: [
        { field: 'kind', old: null, new: kind },
        ...(newEmail === null ? [] : [{ field: 'email', old: stored.email, new: newEmail }]),
      ],
    } as const
    if (accountId === null) await recordAuditEvent(client, { ...event, principal, requestId })
    else await recordAccountEvent(client, accountId, { principal, requestId }, event)
    return { token, expiresAt: rows[0]!.expiresAt }
  })
}

async function hasOtherUser(
  client: PoolClient,
  organizationId: string,
  userId: string,
  email: string,
): Promise<boolean> {
  const { rowCount } = await client.query(
    `SELECT FROM users WHERE organization_id = $1 AND ${EMAIL_KEY} = $2 AND id <> $3 LIMIT 1`,
    [organizationId, foldCase(email), userId],
  )
  return rowCount !== 0
}

/** Whether the organization would have no owner who can sign in without this one. */
async function isLastOwner(client: PoolClient, organizationId: string, user: StoredUser): Promise<boolean> {
  if (user.role !== 'owner' || user.is_deactivated || user.account_id === null) return false
  const { rowCount } = await client.query(
    `SELECT FROM users WHERE organization_id = $1 AND id <> $2 AND role = 'owner' AND deactivated_at IS NULL
       AND account_id IS NOT NULL LIMIT 1`,
    [organizationId, user.id],
  )
  return rowCount === 0
}

async function endAccess(client: PoolClient, organizationId: string, user: StoredUser): Promise<void> {
  await endSignIns(client, organizationId, user)
  await client.query(
    'UPDATE one_time_links SET revoked_at = now() WHERE user_id = $1 AND used_at IS NULL AND revoked_at IS NULL',
    [user.id],
  )
  if (user.account_id === null) return
  await lockAccount(client, user.account_id)
  await revokeLinks(client, user.account_id)
}

/** Ends the sign-ins that are in the organization, and keeps those that are in another one from coming back. */
async function endSignIns(client: PoolClient, organizationId: string, user: StoredUser): Promise<void> {
  // The clock, not the beginning of the transaction, which may have waited for a lock.
  await client.query(`UPDATE users SET signed_out_at = date_trunc('milliseconds', clock_timestamp()) WHERE id = $1`, [
    user.id,
  ])
  await client.query('DELETE FROM sign_ins WHERE account_id = $1 AND organization_id = $2', [
    user.account_id,
    organizationId,
  ])
}
