import { randomUUID } from 'node:crypto'
import { NAME_MAX_LENGTH, type Role, truncateText } from '@workflow-service/contract'
import {
  type Database,
  type Db,
  foldCase,
  inPrismaTransaction,
  newId,
  readClock,
  type Transaction,
  violatedConstraint,
} from '../connection/index.ts'
import type { User } from '../generated/client.ts'
import { type AuditChange, OPERATOR, recordAuditEvent } from '../organizations/index.ts'
import {
  createLink,
  lockAccount,
  mayChangeAccount,
  recordAccountEvent,
  revokeLinks,
  setPassword,
  type VisitorRequest,
} from './accounts.ts'
import { hashToken } from './sign-ins.ts'
import { EMAIL_KEY, emailKeyOf, inUsersTransaction } from './users.ts'

/** A link that can be used, and what it is for. */
export interface OneTimeLink {
  readonly token: string
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

/** An invitation to accept; without the token of its link if a provider has verified the email address of its user. */
export type Invitation = Pick<OneTimeLink, 'organizationId' | 'user'> & { readonly token: string | null }

const IS_OPEN = 'used_at IS NULL AND revoked_at IS NULL AND expires_at > now()'

/** Setup links are made and used one at a time, so that the newest is the only one. */
const SETUP_LOCK = 5_271_906_418

/**
 * Makes the link with which a person becomes an owner of an organization (null: of a new one), and revokes earlier
 * ones. Returns its token, which goes into the fragment of `{APP_URL}/setup#…`.
 */
export async function createSetupLink(db: Database, organizationId: string | null): Promise<string> {
  return await inPrismaTransaction(db, async (tx) => {
    await tx.query('SELECT pg_advisory_xact_lock($1)', [SETUP_LOCK])
    const { token } = await createLink(tx, { kind: 'setup', organizationId, role: 'owner' }, { organizationId })
    await recordAuditEvent(tx, { actor: OPERATOR, organizationId, action: 'setup.link_created' })
    return token
  })
}

/** Reads what a link is for; undefined if it was used, revoked or expired, or if its user may no longer use it. */
export async function findOneTimeLink(db: Database, token: string): Promise<OneTimeLink | undefined> {
  const link = await db.prisma.oneTimeLink.findFirst({
    where: {
      tokenSha256: hashToken(token),
      // Its use compares again: `consumeLink`.
      usedAt: null,
      revokedAt: null,
      expiresAt: { gt: await readClock(db.pool) },
      AND: [
        { OR: [{ organizationId: null }, { organization: { deletedAt: null } }] },
        { OR: [{ kind: 'setup' }, { user: { role: { not: null }, deactivatedAt: null } }] },
      ],
    },
    include: { organization: { select: { name: true } }, user: true },
  })
  if (!link) return undefined
  const { kind, organizationId, organization, user, newEmail, expiresAt } = link
  return {
    token,
    kind: kind as OneTimeLink['kind'],
    organizationId,
    organizationName: organization?.name ?? null,
    user: user && toLinkUser(user),
    accountId: user?.accountId ?? null,
    newEmail,
    expiresAt,
  }
}

function toLinkUser({ id, email, role, firstName, lastName }: User): NonNullable<OneTimeLink['user']> {
  return { id, email, role: role as Role, name: `${firstName} ${lastName}`.trim() }
}

/**
 * Uses a link up, and resolves to who made it (null: the operator). Of several attempts at the same time, one succeeds.
 */
async function consumeLink(tx: Transaction, token: string): Promise<{ createdBy: string | null } | undefined> {
  const { rows } = await tx.query<{ createdBy: string | null }>(
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

interface NewAccount {
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
 * Why a link was not used: it cannot be used any more (undefined); the person got an account or became a user
 * meanwhile; or the password that was checked was replaced meanwhile.
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
    if (error instanceof EmailTakenError || violatedConstraint(error) !== undefined) return 'email_taken'
    throw error
  }
}

/**
 * Uses a setup link, the only open one of its organization: makes the person an owner of that, or of a new one. The
 * link for a new one ends.
 */
export async function completeSetup(
  db: Database,
  link: OneTimeLink,
  person: LinkPerson & { readonly email: string },
  organizationName: string,
  { principal: { address }, requestId }: VisitorRequest,
): Promise<UsedLink | NotUsed> {
  const organizationId = link.organizationId ?? newId()
  const work = async (tx: Transaction): Promise<UsedLink | undefined> => {
    await tx.query('SELECT pg_advisory_xact_lock($1)', [SETUP_LOCK])
    if (!(await consumeLink(tx, link.token))) return undefined
    await revokeLinks(tx, { kind: 'setup', organizationId: null })
    if (link.organizationId === null) {
      await tx.prisma.organization.create({ data: { id: organizationId, name: organizationName } })
    }
    const { accountId, name } = await ensureAccount(tx, person)
    const used = {
      accountId,
      userId: await makeOwner(tx, { organizationId, accountId, email: person.email, name }),
      organizationId,
      name,
    }
    const by = { principal: { ...used, address }, requestId }
    const target = { kind: 'organization', id: organizationId, name: link.organizationName ?? organizationName }
    if (link.organizationId === null) await recordAuditEvent(tx, { ...by, action: 'organization.created', target })
    await recordAuditEvent(tx, { ...by, action: 'setup.completed', target })
    return used
  }
  return await orNotUsed(
    link.organizationId === null ? inPrismaTransaction(db, work) : inUsersTransaction(db, link.organizationId, work),
  )
}

/**
 * Makes the account an owner: as the user that it is already, as the user of its address who has no account, or as a
 * new user.
 */
async function makeOwner(
  tx: Transaction,
  { organizationId, accountId, email, name }: Omit<UsedLink, 'userId'> & { readonly email: string },
): Promise<string> {
  const { rows } = await tx.query<{ id: string; accountId: string | null }>(
    `SELECT id, account_id AS "accountId" FROM users u
     WHERE organization_id = $1 AND (account_id = $2 OR ${EMAIL_KEY} = $3)
     ORDER BY account_id = $2 DESC NULLS LAST, email = $4 DESC LIMIT 1`,
    [organizationId, accountId, foldCase(email), email],
  )
  const [user] = rows
  if (!user) {
    const id = newId()
    await tx.prisma.user.create({
      data: { id, organizationId, email, emailKey: emailKeyOf(email), firstName: name, accountId, role: 'owner' },
    })
    return id
  }
  if (user.accountId !== null && user.accountId !== accountId) throw new EmailTakenError()
  // An invitation of the user, who has an account from now on.
  await revokeLinks(tx, { userId: user.id })
  // Another role: see endSignIns() of users.ts.
  await tx.query(
    `UPDATE users SET account_id = $2, role = 'owner', deactivated_at = NULL,
       signed_out_at = CASE WHEN role = 'owner' THEN signed_out_at ELSE date_trunc('milliseconds', clock_timestamp()) END
     WHERE id = $1`,
    [user.id, accountId],
  )
  return user.id
}

/**
 * Accepts an invitation as a person who is new or has an account. Without a token, a provider's sign-in accepts it:
 * that removes the password, which was not asked for, and which an admin of an earlier organization may have set with a
 * reset link.
 */
export async function acceptInvitation(
  db: Database,
  { token, organizationId, user }: Invitation,
  person: LinkPerson,
  visitor: VisitorRequest,
): Promise<UsedLink | NotUsed> {
  const { principal, requestId } = visitor
  if (organizationId === null || !user) return undefined
  const work = async (tx: Transaction): Promise<UsedLink | undefined> => {
    const isUsed = token === null ? await consumeInvitation(tx, user.id) : await consumeLink(tx, token)
    if (!isUsed) return undefined
    const { accountId, name } = await ensureAccount(tx, person)
    const { count } = await tx.prisma.user.updateMany({
      where: { organizationId, id: user.id, accountId: null, role: { not: null }, deactivatedAt: null },
      data: { accountId },
    })
    if (count === 0) throw new Error('A user with an open invitation has an account or no role')
    const used = { accountId, userId: user.id, organizationId, name }
    await recordAuditEvent(tx, {
      principal: { ...used, address: principal.address },
      action: 'link.accepted',
      target: { kind: 'user', id: user.id, name: user.email },
      changes: [{ field: 'kind', old: null, new: 'invitation' }],
      requestId,
    })
    if (token === null && 'accountId' in person && person.passwordHash !== null) {
      await setPassword(tx, accountId, null)
      await tx.prisma.signIn.deleteMany({ where: { accountId } })
      await recordUse(tx, used, visitor, 'account.password_changed', [{ field: 'link', old: null, new: 'invitation' }])
    }
    return used
  }
  return await orNotUsed(inUsersTransaction(db, organizationId, work))
}

async function consumeInvitation(tx: Transaction, userId: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `UPDATE one_time_links SET used_at = now() WHERE user_id = $1 AND kind = 'invitation' AND ${IS_OPEN}`,
    [userId],
  )
  return rowCount !== 0
}

/**
 * Sets a new password with a reset link, and ends all sign-ins and links of the account. Resolves to undefined if the
 * link cannot be used: also when its maker may no longer make it, because the person joined another organization.
 */
export async function acceptReset(
  db: Database,
  link: OneTimeLink,
  passwordHash: string,
  visitor: VisitorRequest,
): Promise<UsedLink | undefined> {
  const { organizationId, user, accountId } = link
  if (organizationId === null || !user || accountId === null) return undefined
  return await inPrismaTransaction(db, async (tx) => {
    const account = await lockAccount(tx, accountId)
    const consumed = account && (await consumeLink(tx, link.token))
    if (!consumed) return undefined
    const change = { accountId, makerId: consumed.createdBy, kind: 'reset' } as const
    if (!(await mayChangeAccount(tx, change))) return undefined
    await setPassword(tx, accountId, passwordHash)
    await tx.prisma.signIn.deleteMany({ where: { accountId } })
    await revokeLinks(tx, { user: { accountId } })
    const used = { accountId, userId: user.id, organizationId, name: account.name }
    return await recordUse(tx, used, visitor, 'account.password_changed', [{ field: 'link', old: null, new: 'reset' }])
  })
}

/** Records in the audit logs of the account's organizations what a link was used for. */
async function recordUse(
  tx: Transaction,
  used: UsedLink,
  { principal: { address }, requestId }: VisitorRequest,
  action: 'account.password_changed' | 'account.saved',
  changes: readonly AuditChange[],
): Promise<UsedLink> {
  const { accountId: id, name } = used
  const request = { principal: { ...used, address }, requestId }
  await recordAccountEvent(tx, id, request, { action, target: { kind: 'account', id, name }, changes })
  return used
}

/**
 * Gives the account another email address, also as a user of each organization, with a link and the password of the
 * account.
 */
export async function acceptEmail(
  db: Database,
  link: OneTimeLink,
  { accountId, passwordHash }: CheckedAccount,
  visitor: VisitorRequest,
): Promise<UsedLink | NotUsed> {
  const { organizationId, user, newEmail } = link
  if (organizationId === null || !user || newEmail === null || accountId !== link.accountId) return undefined
  const work = async (tx: Transaction): Promise<UsedLink | undefined> => {
    // Before the account, in the order of their ids, as every change of users does. Joining another one meanwhile
    // revokes the link.
    const { rows } = await tx.query<{ id: string }>(
      `SELECT id FROM organizations WHERE id IN (SELECT organization_id FROM users WHERE account_id = $1)
       ORDER BY id FOR NO KEY UPDATE`,
      [accountId],
    )
    const account = await lockAccount(tx, accountId)
    const consumed = account && (await consumeLink(tx, link.token))
    if (!consumed) return undefined
    const change = { accountId, makerId: consumed.createdBy, kind: 'email' } as const
    if (!(await mayChangeAccount(tx, change))) return undefined
    if (account.passwordHash !== passwordHash) throw new PasswordChangedError()
    await tx.prisma.account.update({
      where: { id: accountId },
      data: { email: newEmail, emailKey: foldCase(newEmail) },
    })
    const ids = rows.map(({ id }) => id)
    await tx.prisma.organization.updateMany({ where: { id: { in: ids } }, data: { usersVersion: randomUUID() } })
    await tx.prisma.user.updateMany({
      where: { accountId },
      data: { email: newEmail, emailKey: emailKeyOf(newEmail), isDuplicate: false },
    })
    await tx.query(
      `UPDATE notices SET recipient = $3 WHERE organization_id = ANY ($1::uuid[]) AND status = 'waiting'
         AND user_id IN (SELECT id FROM users WHERE account_id = $2)`,
      [ids, accountId, newEmail],
    )
    const used = { accountId, userId: user.id, organizationId, name: account.name }
    return await recordUse(tx, used, visitor, 'account.saved', [{ field: 'email', old: account.email, new: newEmail }])
  }
  return await orNotUsed(inPrismaTransaction(db, work))
}

/**
 * An open invitation of an email address. The addresses are compared ignoring case, but not folded: who controls `weiß`
 * need not be the person of `weiss`.
 */
export async function findInvitation(db: Db, email: string): Promise<Invitation | undefined> {
  const { rows } = await db.pool.query<{ organizationId: string; id: string; email: string; role: Role; name: string }>(
    `SELECT u.organization_id AS "organizationId", u.id, u.email, u.role, trim(u.first_name || ' ' || u.last_name) AS name
     FROM one_time_links l JOIN users u ON u.id = l.user_id
     JOIN organizations o ON o.id = u.organization_id AND o.deleted_at IS NULL
     WHERE l.kind = 'invitation' AND ${IS_OPEN} AND ${EMAIL_KEY} = $1
       AND u.account_id IS NULL AND u.role IS NOT NULL AND u.deactivated_at IS NULL
     ORDER BY l.created_at DESC`,
    [foldCase(email)],
  )
  const found = rows.find((invited) => isSameIgnoringCase(invited.email, email))
  if (!found) return undefined
  const { organizationId, ...user } = found
  return { token: null, organizationId, user }
}

/**
 * Whether two texts are the same ignoring case. Compares both cases: the lower case of the Kelvin sign is k, but the
 * upper case of k is K. PostgreSQL's lower() would depend on the locale of the database.
 */
function isSameIgnoringCase(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase() && one.toUpperCase() === other.toUpperCase()
}

/**
 * Adds the account of a new person, or locks the one that joins and ends its other links: their makers may change it in
 * its present organizations only.
 */
async function ensureAccount(tx: Transaction, person: LinkPerson): Promise<{ accountId: string; name: string }> {
  if ('accountId' in person) {
    const { accountId } = person
    const account = await lockAccount(tx, accountId)
    if (account?.passwordHash !== person.passwordHash) throw new PasswordChangedError()
    await revokeLinks(tx, { user: { accountId } })
    return { accountId, name: account.name }
  }
  const accountId = newId()
  const { email, passwordHash, oidc } = person
  // An invitation gives it the first and last name, or the email address: both may be longer.
  const name = truncateText(person.name, NAME_MAX_LENGTH)
  await tx.prisma.account.create({
    data: {
      id: accountId,
      email,
      emailKey: foldCase(email),
      name,
      passwordHash,
      passwordChangedAt: passwordHash === null ? null : new Date(),
      oidcIssuer: oidc?.issuer ?? null,
      oidcSubject: oidc?.subject ?? null,
    },
  })
  return { accountId, name }
}
