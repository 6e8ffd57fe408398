import { randomUUID } from 'node:crypto'
import type { AppUserOut, Role } from '@workflow-service/contract'
import {
  type Database,
  type Db,
  foldCase,
  inPrismaTransaction,
  type PrismaDb,
  type Transaction,
  versionOf,
  violatedConstraint,
} from '../connection/index.ts'
import type { Prisma } from '../generated/client.ts'
import {
  assertQuota,
  type AuditedBy,
  changedFields,
  isVisible,
  queryVisible,
  recordAuditEvent,
  type Viewer,
} from '../organizations/index.ts'
import { createLink, lockAccount, mayChangeAccount, recordAccountEvent, revokeLinks } from './accounts.ts'

/** The values that a person edits. */
export interface UserValues extends Pick<AppUserOut, 'first_name' | 'last_name' | 'role'> {
  readonly is_deactivated: boolean
}

interface StoredUser extends AppUserOut, UserValues {
  readonly account_id: string | null
  /** See migrations 014 and 019. */
  readonly is_duplicate: boolean
}

/**
 * Throws to refuse a change of this user to these values; undefined values: another change. Called with the user's row
 * locked.
 */
export type CheckUserChange = (user: Pick<AppUserOut, 'role'>, next?: Pick<AppUserOut, 'role'>) => void

/** What the unique index of users compares: the address, its case folded (see migration 019). */
export const EMAIL_KEY = 'coalesce(email_key, lower(email))'

/** Returns the value of `email_key` for an address: folded by `foldCase`, or null where lower() does the same. */
export function emailKeyOf(email: string): string | null {
  const folded = foldCase(email)
  return folded === email.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase()) ? null : folded
}

/** The columns of a user, and what its state follows from. */
const userFields = (organizationId: string) =>
  ({
    id: true,
    email: true,
    firstName: true,
    lastName: true,
    role: true,
    deactivatedAt: true,
    accountId: true,
    isDuplicate: true,
    account: {
      select: {
        lastSignedInAt: true,
        signIns: {
          where: { organizationId },
          select: { lastSeenAt: true },
          orderBy: { lastSeenAt: 'desc' },
          take: 1,
        },
      },
    },
    oneTimeLinks: {
      where: { kind: 'invitation', usedAt: null, revokedAt: null, expiresAt: { gt: new Date() } },
      select: { kind: true },
      take: 1,
    },
    _count: { select: { workflows: { where: { workflow: { deletedAt: null } } } } },
  }) satisfies Prisma.UserSelect

type UserRow = Prisma.UserGetPayload<{ select: ReturnType<typeof userFields> }>

// The workflows that a member does not see are not counted either.
const COUNT_WORKFLOWS = `
  SELECT user_id AS id, count(*)::integer AS count FROM workflow_users
  JOIN workflows AS workflow ON workflow.id = workflow_id AND ${isVisible('workflow', '$2')}
  WHERE workflow.organization_id = $1 AND user_id = ANY ($3::uuid[]) GROUP BY user_id`

/**
 * Lists the users of an organization by email address, those after the address `after`, with how many workflows list
 * them that the viewer sees.
 */
export async function listUsers(
  db: Pick<Database, 'pool' | 'prisma'>,
  viewer: Viewer,
  { limit, after = '' }: { limit: number; after?: string | undefined },
): Promise<AppUserOut[]> {
  const { organizationId, memberId } = viewer
  const rows = await db.prisma.user.findMany({
    where: { organizationId, email: { gt: after } },
    select: userFields(organizationId),
    orderBy: { email: 'asc' },
    take: limit,
  })
  const users = rows.map((row) => toOut(toStored(row)))
  if (memberId === null) return users
  const ids = users.map(({ id }) => id)
  const seen = await queryVisible<{ id: string; count: number }>(db, viewer, COUNT_WORKFLOWS, ids)
  const counts = new Map(seen.map(({ id, count }) => [id, count]))
  return users.map((user) => ({ ...user, workflow_count: counts.get(user.id) ?? 0 }))
}

/** Reads one user; undefined if the organization has no such user. */
async function findUser({ prisma }: Pick<Transaction, 'prisma'>, organizationId: string, id: string) {
  const row = await prisma.user.findFirst({ where: { organizationId, id }, select: userFields(organizationId) })
  return row ? toStored(row) : undefined
}

/** Reads one user for the operator; undefined if the organization has no such user. */
export async function findUserById(
  db: PrismaDb,
  organizationId: string,
  userId: string,
): Promise<AppUserOut | undefined> {
  const user = await findUser(db, organizationId, userId)
  return user && toOut(user)
}

/** Reads the user of this email address: exactly this one, or else the only one that differs in case. */
export async function findUserByEmail(
  db: Pick<Database, 'pool' | 'prisma'>,
  organizationId: string,
  email: string,
): Promise<AppUserOut | undefined> {
  // By hand: Prisma has no lower().
  const { rows } = await db.pool.query<{ id: string; email: string }>(
    `SELECT id, email FROM users WHERE organization_id = $1 AND ${EMAIL_KEY} = $2 ORDER BY email = $3 DESC LIMIT 2`,
    [organizationId, foldCase(email), email],
  )
  const [first, second] = rows
  return first && (first.email === email || !second) ? await findUserById(db, organizationId, first.id) : undefined
}

/**
 * Writes `email_key` where it is missing or of an earlier address: for rows from before migration 019, and those that a
 * service of 1.0.0 writes during an upgrade. A user whose address turns out to differ from another user's in case only
 * becomes a duplicate, as in migration 014. Resolves to how many rows it has changed.
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
      if (violatedConstraint(error) === undefined) throw error
      return save(true)
    })
  }
  return stale.length
}

/**
 * Lists users whose addresses differ from another user's in case only, since before the unique indexes: the first 10.
 */
export async function listDuplicateUsers(db: PrismaDb): Promise<{ email: string; organizationName: string }[]> {
  const users = await db.prisma.user.findMany({
    where: { isDuplicate: true, organization: { deletedAt: null } },
    select: { email: true, organization: { select: { name: true } } },
    orderBy: [{ organization: { name: 'asc' } }, { email: 'asc' }],
    take: 10,
  })
  return users.map(({ email, organization }) => ({ email, organizationName: organization.name }))
}

function toStored({ account, oneTimeLinks, _count, ...row }: UserRow): StoredUser {
  const values = {
    first_name: row.firstName,
    last_name: row.lastName,
    role: row.role as Role | null,
    is_deactivated: row.deactivatedAt !== null,
  }
  const seenAt = [account?.lastSignedInAt, account?.signIns[0]?.lastSeenAt].map((time) => time?.getTime() ?? 0)
  const lastSeenMs = Math.max(...seenAt)
  return {
    id: row.id,
    email: row.email,
    ...values,
    state: stateOf(values, { hasAccount: row.accountId !== null, isInvited: oneTimeLinks.length > 0 }),
    last_seen_at: lastSeenMs === 0 ? null : new Date(lastSeenMs).toISOString(),
    workflow_count: _count.workflows,
    version: versionOfUser(values),
    account_id: row.accountId,
    is_duplicate: row.isDuplicate,
  }
}

function stateOf(
  { role, is_deactivated: isDeactivated }: UserValues,
  { hasAccount, isInvited }: { readonly hasAccount: boolean; readonly isInvited: boolean },
): AppUserOut['state'] {
  if (isDeactivated) return 'deactivated'
  if (role === null) return 'no_access'
  if (hasAccount) return 'active'
  return isInvited ? 'invited' : 'no_access'
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
 * Runs a change of an organization's users. All of them are serialized by the organization's row, which also tells the
 * gateways that the users in workflow documents changed. Resolves to undefined if the organization does not exist.
 */
export async function inUsersTransaction<Result>(
  db: Database,
  organizationId: string,
  work: (tx: Transaction) => Promise<Result>,
): Promise<Result | undefined> {
  return await inPrismaTransaction(db, async (tx) => {
    const { count } = await tx.prisma.organization.updateMany({
      where: { id: organizationId, deletedAt: null },
      data: { usersVersion: randomUUID() },
    })
    return count === 0 ? undefined : await work(tx)
  })
}

/** Runs a change of one user, as `inUsersTransaction`. Resolves to undefined if there is no such user. */
async function changeUser<Result>(
  db: Database,
  userId: string,
  { principal: { organizationId } }: AuditedBy,
  work: (tx: Transaction, stored: StoredUser, organizationId: string) => Promise<Result>,
): Promise<Result | undefined> {
  return await inUsersTransaction(db, organizationId, async (tx) => {
    const stored = await findUser(tx, organizationId, userId)
    return stored && (await work(tx, stored, organizationId))
  })
}

/** The values of a new user. */
type NewUser = Pick<AppUserOut, 'id' | 'email' | 'first_name' | 'last_name' | 'role'>

/** Adds a user. The same request again resolves to the same user. */
export async function createUser(
  db: Database,
  { id, ...values }: NewUser,
  request: AuditedBy,
): Promise<AppUserOut | 'email_taken' | 'id_taken'> {
  const { organizationId } = request.principal
  const { email, first_name, last_name, role } = values
  try {
    const created = await inUsersTransaction(db, organizationId, async (tx) => {
      const stored = await findUser(tx, organizationId, id)
      if (stored) return changedFields<typeof values>(stored, values).length === 0 ? stored : undefined
      await tx.prisma.user.create({
        data: {
          id,
          organizationId,
          email,
          emailKey: emailKeyOf(email),
          firstName: first_name,
          lastName: last_name,
          role,
        },
      })
      await assertQuota(tx, request, 'users')
      const target = { kind: 'user', id, name: email }
      const changes = changedFields({}, values)
      await recordAuditEvent(tx, { ...request, action: 'user.created', target, changes })
      return await findUser(tx, organizationId, id)
    })
    return created ? toOut(created) : 'id_taken'
  } catch (error) {
    const constraint = violatedConstraint(error)
    if (constraint === undefined) throw error
    return constraint === 'users_pkey' ? 'id_taken' : 'email_taken'
  }
}

/**
 * Changes a user. A changed role and a deactivation end the person's sign-ins to the organization, and its links.
 * `changed_meanwhile`: `version` is not that of the stored values.
 */
export async function saveUser(
  db: Database,
  userId: string,
  { version, ...change }: Partial<UserValues> & { version: string },
  check: CheckUserChange,
  request: AuditedBy,
): Promise<{ kind: 'saved' | 'changed_meanwhile'; user: AppUserOut } | 'last_owner' | undefined> {
  return await changeUser(db, userId, request, async (tx, stored, organizationId) => {
    const { first_name, last_name, role, is_deactivated } = { ...stored, ...change }
    const next: UserValues = { first_name, last_name, role, is_deactivated }
    check(stored, next)
    // Saved already: the request is repeated, or another person made the same change.
    if (versionOfUser(next) === stored.version) return { kind: 'saved', user: toOut(stored) }
    if (version !== stored.version) return { kind: 'changed_meanwhile', user: toOut(stored) }
    const staysOwner = role === 'owner' && !is_deactivated
    if (!staysOwner && (await isLastOwner(tx, organizationId, stored))) return 'last_owner'
    // Before the change, after which people who change themselves may have another role.
    const target = { kind: 'user', id: userId, name: stored.email }
    const changes = changedFields<UserValues>(stored, next)
    await recordAuditEvent(tx, { ...request, action: 'user.saved', target, changes })
    await tx.prisma.user.update({
      where: { organizationId, id: userId },
      data: {
        firstName: first_name,
        lastName: last_name,
        role,
        ...(is_deactivated === stored.is_deactivated ? {} : { deactivatedAt: is_deactivated ? new Date() : null }),
      },
    })
    if (role !== stored.role || is_deactivated !== stored.is_deactivated) await endAccess(tx, organizationId, stored)
    return { kind: 'saved', user: toOut((await findUser(tx, organizationId, userId))!) }
  })
}

/**
 * Removes a user, and the account if no other organization has it. `finish` is the end of the same transaction.
 * Resolves to undefined if there is no such user.
 */
export async function deleteUser(
  db: Database,
  userId: string,
  check: CheckUserChange,
  request: AuditedBy,
  finish: (tx: Transaction) => Promise<void> = async () => {},
): Promise<'removed' | 'last_owner' | undefined> {
  return await changeUser(db, userId, request, async (tx, stored, organizationId) => {
    check(stored)
    if (await isLastOwner(tx, organizationId, stored)) return 'last_owner'
    await recordAuditEvent(tx, {
      ...request,
      action: 'user.removed',
      target: { kind: 'user', id: userId, name: stored.email },
      changes: changedFields<object>(stored, { email: null, role: null }),
    })
    await endAccess(tx, organizationId, stored)
    await tx.prisma.user.delete({ where: { organizationId, id: userId } })
    // Of several users whose addresses differed in case only before the unique index existed, the next one takes its
    // place.
    await tx.query(
      `UPDATE users SET is_duplicate = false WHERE NOT $3 AND id = (
         SELECT id FROM users WHERE organization_id = $1 AND ${EMAIL_KEY} = $2 AND is_duplicate ORDER BY id LIMIT 1)`,
      [organizationId, foldCase(stored.email), stored.is_duplicate],
    )
    if (stored.account_id !== null) {
      await tx.prisma.account.deleteMany({ where: { id: stored.account_id, users: { none: {} } } })
    }
    await finish(tx)
    return 'removed'
  })
}

/** Ends the person's sign-ins to the organization. Resolves to whether there is such a user. */
export async function signUserOut(db: Database, userId: string, check: CheckUserChange, request: AuditedBy) {
  const isSignedOut = await changeUser(db, userId, request, async (tx, stored, organizationId) => {
    check(stored)
    await endSignIns(tx, organizationId, stored)
    const target = { kind: 'user', id: userId, name: stored.email }
    await recordAuditEvent(tx, { ...request, action: 'user.signed_out', target })
    return true
  })
  return isSignedOut ?? false
}

/** The link to make. `email`: gives the account another address. */
export type NewUserLink = { readonly kind: 'invitation' | 'reset' } | { readonly kind: 'email'; readonly email: string }

/**
 * Makes a link for a user, and revokes an earlier one of its kind. `not_possible`: invitations are for users with a
 * role and without an account; the others are for active people whose account the maker may change (see
 * `mayChangeAccount`), and `email` for those who have a password, which the bearer needs. A link that changes an
 * account is in the audit log of each of its organizations.
 */
export async function createUserLink(
  db: Database,
  userId: string,
  link: NewUserLink,
  check: CheckUserChange,
  request: AuditedBy,
): Promise<{ token: string; expiresAt: Date } | 'not_possible' | 'email_taken' | undefined> {
  const { kind } = link
  const makerId = request.principal.userId
  return await changeUser(db, userId, request, async (tx, stored, organizationId) => {
    check(stored)
    const { account_id: accountId, role, is_deactivated: isDeactivated } = stored
    if (role === null || isDeactivated || (kind === 'invitation') !== (accountId === null)) return 'not_possible'
    if (kind !== 'invitation' && accountId !== null) {
      const account = await lockAccount(tx, accountId)
      if (!account || (kind === 'email' && account.passwordHash === null)) return 'not_possible'
      if (!(await mayChangeAccount(tx, { accountId, makerId, kind }))) return 'not_possible'
    }
    // Only among the organization's own users, whom the maker sees: accounts of others are not revealed before the link
    // is used.
    const newEmail = link.kind === 'email' ? link.email : null
    if (newEmail !== null && (await hasOtherUser(tx, organizationId, userId, newEmail))) return 'email_taken'
    // An account has at most one of a kind, whichever organization it was made in.
    const earlier = [{ userId }, ...(accountId === null ? [] : [{ user: { accountId } }])]
    const made = { kind, organizationId, userId, role, createdBy: makerId, newEmail }
    const { token, expiresAt } = await createLink(tx, made, { OR: earlier })
    const event = {
      action: 'user.link_created',
      target: { kind: 'user', id: userId, name: stored.email },
      changes: [
        { field: 'kind', old: null, new: kind },
        ...(newEmail === null ? [] : [{ field: 'email', old: stored.email, new: newEmail }]),
      ],
    } as const
    if (accountId === null) await recordAuditEvent(tx, { ...request, ...event })
    else await recordAccountEvent(tx, accountId, request, event)
    return { token, expiresAt }
  })
}

async function hasOtherUser(tx: Transaction, organizationId: string, userId: string, email: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `SELECT FROM users WHERE organization_id = $1 AND ${EMAIL_KEY} = $2 AND id <> $3 LIMIT 1`,
    [organizationId, foldCase(email), userId],
  )
  return rowCount !== 0
}

/** Whether the organization would have no owner who can sign in without this one. */
async function isLastOwner(tx: Transaction, organizationId: string, user: StoredUser): Promise<boolean> {
  if (user.role !== 'owner' || user.is_deactivated || user.account_id === null) return false
  const other = await tx.prisma.user.findFirst({
    where: { organizationId, id: { not: user.id }, role: 'owner', deactivatedAt: null, accountId: { not: null } },
    select: { id: true },
  })
  return other === null
}

async function endAccess(tx: Transaction, organizationId: string, user: StoredUser): Promise<void> {
  // Before the sign-ins and links, as where the password changes.
  if (user.account_id !== null) await lockAccount(tx, user.account_id)
  await endSignIns(tx, organizationId, user)
  await tx.query(`DELETE FROM notices WHERE organization_id = $1 AND user_id = $2 AND status = 'waiting'`, [
    organizationId,
    user.id,
  ])
  const links = user.account_id === null ? { userId: user.id } : { user: { accountId: user.account_id } }
  await revokeLinks(tx, links)
}

/** Ends the sign-ins that are in the organization, and keeps those that are in another one from coming back. */
async function endSignIns(tx: Transaction, organizationId: string, user: StoredUser): Promise<void> {
  // The clock, not the beginning of the transaction, which may have waited for a lock.
  // Written by the database, whose clock gives a sign-in its time.
  await tx.query(`UPDATE users SET signed_out_at = date_trunc('milliseconds', clock_timestamp()) WHERE id = $1`, [
    user.id,
  ])
  if (user.account_id === null) return
  await tx.prisma.signIn.deleteMany({ where: { accountId: user.account_id, organizationId } })
}
