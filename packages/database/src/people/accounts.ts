import { LINK_HOURS, type Role } from '@workflow-service/contract'
import {
  type Database,
  type Db,
  foldCase,
  inPrismaTransaction,
  type PrismaDb,
  type Queryable,
  readClock,
  type Transaction,
} from '../connection/index.ts'
import type { Prisma } from '../generated/client.ts'
import {
  assertRole,
  type AuditedBy,
  changedFields,
  type NewAuditEvent,
  OPERATOR,
  recordAuditEvent,
} from '../organizations/index.ts'
import { type AuditedRequest, createSignIn, hashToken, newToken, type NewSignIn } from './sign-ins.ts'

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
  /** Where a sign-in begins: in the organization in which the person worked last, else the first. */
  readonly entrance: Membership | undefined
}

/** Where a request of a person who is not signed in comes from. */
export interface VisitorRequest {
  readonly principal: { readonly address: string; readonly userAgent: string | null }
  readonly requestId: string
}

/** Finds an account that is not disabled, with the organizations in which the person has a role. */
async function findAccount(db: PrismaDb, where: Prisma.AccountWhereInput): Promise<Account | undefined> {
  const found = await db.prisma.account.findFirst({
    where: { ...where, disabledAt: null },
    select: {
      id: true,
      email: true,
      name: true,
      passwordHash: true,
      oidcSubject: true,
      lastOrganizationId: true,
      users: {
        where: { role: { not: null }, deactivatedAt: null, organization: { deletedAt: null } },
        select: { id: true, role: true, organization: { select: { id: true, name: true, isSuspended: true } } },
        orderBy: [{ organization: { name: 'asc' } }, { organizationId: 'asc' }],
      },
    },
  })
  if (!found) return undefined
  const { users, oidcSubject, lastOrganizationId, ...account } = found
  const organizations = users.map(({ id: userId, role, organization }) => ({
    ...organization,
    role: role as Role,
    userId,
  }))
  const entrance = organizations.find(({ id }) => id === lastOrganizationId) ?? organizations[0]
  return { ...account, hasOidc: oidcSubject !== null, organizations, entrance }
}

export async function findAccountById(db: PrismaDb, id: string): Promise<Account | undefined> {
  return await findAccount(db, { id })
}

/** Finds an account by its email address, ignoring case. */
export async function findAccountByEmail(db: PrismaDb, email: string): Promise<Account | undefined> {
  return await findAccount(db, { emailKey: foldCase(email) })
}

/** Finds an account by its identity at an OpenID Connect provider. */
export async function findAccountByOidc(
  db: PrismaDb,
  { issuer, subject }: { readonly issuer: string; readonly subject: string },
) {
  return await findAccount(db, { oidcIssuer: issuer, oidcSubject: subject })
}

export async function findAccountByUser(db: PrismaDb, userId: string): Promise<Account | undefined> {
  return await findAccount(db, { users: { some: { id: userId } } })
}

/** Whether any account exists. Without one, a setup link makes the first owner. */
export async function hasAccounts(db: PrismaDb): Promise<boolean> {
  return (await db.prisma.account.findFirst({ select: { id: true } })) !== null
}

/**
 * Signs a person in to an organization, and returns the token for the cookie. `passwordHash` is the one whose password
 * was checked: undefined is returned if it was replaced meanwhile, which has ended all sign-ins.
 */
export async function signIn(
  db: Database,
  account: Pick<Account, 'id' | 'name'> & { readonly passwordHash?: string | null },
  membership: Pick<Membership, 'id' | 'userId'>,
  method: NewSignIn['method'],
  { principal: { address, userAgent }, requestId }: VisitorRequest,
): Promise<string | undefined> {
  const { id: organizationId, userId } = membership
  return await inPrismaTransaction(db, async (tx) => {
    const { count } = await tx.prisma.account.updateMany({
      where: {
        id: account.id,
        disabledAt: null,
        ...(account.passwordHash === undefined ? {} : { passwordHash: account.passwordHash }),
      },
      data: { lastSignedInAt: new Date(), lastOrganizationId: organizationId },
    })
    if (count === 0) return undefined
    await recordAuditEvent(tx, {
      principal: { organizationId, userId, name: account.name, address },
      action: 'account.signed_in',
      target: { kind: 'account', id: account.id, name: account.name },
      changes: [{ field: 'method', old: null, new: method }],
      requestId,
    })
    return await createSignIn(tx, { accountId: account.id, organizationId, method, address, userAgent })
  })
}

/**
 * Records a failed sign-in in each organization of the account. The address that was typed is not recorded: it may be a
 * password.
 */
export async function recordFailedSignIn(
  db: Db,
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

/**
 * Locks an account until the end of the transaction: what it belongs to, its password and its links do not change
 * meanwhile. Taken after the locks of organizations. Resolves to undefined without such an account.
 */
export async function lockAccount(tx: Queryable, accountId: string) {
  const { rows } = await tx.query<{ name: string; email: string; passwordHash: string | null }>(
    `SELECT name, email, password_hash AS "passwordHash" FROM accounts WHERE id = $1 AND disabled_at IS NULL FOR NO KEY UPDATE`,
    [accountId],
  )
  return rows[0]
}

/** Ends the open links that meet the condition. */
export async function revokeLinks({ prisma }: Pick<Transaction, 'prisma'>, which: Prisma.OneTimeLinkWhereInput) {
  await prisma.oneTimeLink.updateMany({
    where: { ...which, usedAt: null, revokedAt: null },
    data: { revokedAt: new Date() },
  })
}

/** Makes a link, of whose token only the hash is stored, and ends the open ones of its kind that meet the condition. */
export async function createLink(
  tx: Transaction,
  link: Omit<Prisma.OneTimeLinkUncheckedCreateInput, 'tokenSha256' | 'expiresAt'> & { kind: keyof typeof LINK_HOURS },
  earlier: Prisma.OneTimeLinkWhereInput,
): Promise<{ token: string; expiresAt: Date }> {
  await revokeLinks(tx, { kind: link.kind, ...earlier })
  const token = newToken()
  const expiresAt = new Date((await readClock(tx)).getTime() + LINK_HOURS[link.kind] * 3_600_000)
  await tx.prisma.oneTimeLink.create({ data: { ...link, tokenSha256: hashToken(token), expiresAt } })
  return { token, expiresAt }
}

/** A change of an account by the bearer of a link. */
interface ChangeByLink {
  readonly accountId: string
  /** The user who made the link; null: the operator. */
  readonly makerId: string | null
  readonly kind: 'reset' | 'email'
}

/**
 * Whether the maker of a link may let its bearer change the account: a new password lets the bearer sign in to all
 * organizations of the account, so it must have only one; another address needs an admin of every one, and an owner for
 * an owner. Called with the account locked, when a link is made and when it is used.
 */
export async function mayChangeAccount(
  { prisma }: Pick<Transaction, 'prisma'>,
  { accountId, makerId, kind }: ChangeByLink,
): Promise<boolean> {
  if (makerId === null) return true
  const maker = await prisma.user.findFirst({ where: { id: makerId }, select: { accountId: true } })
  if (!maker || maker.accountId === null) return false
  const users = await prisma.user.findMany({ where: { accountId, organization: { deletedAt: null } } })
  const makers = await prisma.user.findMany({ where: { accountId: maker.accountId, deactivatedAt: null } })
  const isAllowed = users.every(({ organizationId, role }) =>
    makers.some(
      (user) =>
        user.organizationId === organizationId &&
        (user.role === 'owner' || (user.role === 'admin' && role !== 'owner')),
    ),
  )
  return isAllowed && (kind === 'email' ? users.length > 0 : users.length === 1)
}

/** The users that an account is, one in each organization. */
const ofAccount = (accountId: string) =>
  ({
    where: { accountId, organization: { deletedAt: null } },
    select: { id: true, organizationId: true },
    orderBy: { organizationId: 'asc' },
  }) satisfies Prisma.UserFindManyArgs

/** Records a change of an account in the audit log of each of its organizations: what changes in one concerns all. */
export async function recordAccountEvent(
  tx: Transaction,
  accountId: string,
  { principal, requestId }: AuditedBy,
  event: Pick<NewAuditEvent, 'action' | 'target' | 'changes'>,
): Promise<void> {
  const { name, address, userId } = principal
  await assertRole(tx, principal)
  const users = await tx.prisma.user.findMany(ofAccount(accountId))
  // The actor is the user that the person is in each organization.
  const actor =
    userId === null ? null : await tx.prisma.user.findFirst({ where: { id: userId }, select: { accountId: true } })
  const actors = actor?.accountId ? await tx.prisma.user.findMany(ofAccount(actor.accountId)) : []
  const actorIds = new Map(actors.map((user) => [user.organizationId, user.id]))
  for (const { organizationId } of users) {
    const by =
      userId === null ? OPERATOR : ({ kind: 'person', id: actorIds.get(organizationId) ?? null, name } as const)
    await recordAuditEvent(tx, { ...event, actor: by, organizationId, address, requestId })
  }
}

/** Changes the name of the person. The email address is changed with a link: `acceptEmail`. */
export async function saveAccount(db: Database, values: { name: string }, request: AuditedRequest): Promise<void> {
  const { accountId } = request.principal
  await inPrismaTransaction(db, async (tx) => {
    const account = await lockAccount(tx, accountId)
    const changes = account ? changedFields({ name: account.name }, values) : []
    if (changes.length === 0) return
    await tx.prisma.account.update({ where: { id: accountId }, data: { name: values.name } })
    await recordAccountEvent(tx, accountId, request, {
      action: 'account.saved',
      target: { kind: 'account', id: accountId, name: values.name },
      changes,
    })
  })
}

/**
 * Replaces the password, and ends all sign-ins of the account except the one of the request, and its links. Resolves to
 * false if that sign-in was ended meanwhile, for example by a reset.
 */
export async function changePassword(db: Database, passwordHash: string, request: AuditedRequest): Promise<boolean> {
  const { accountId, signInId, name } = request.principal
  return await inPrismaTransaction(db, async (tx) => {
    await lockAccount(tx, accountId)
    if (!(await tx.prisma.signIn.findFirst({ where: { id: signInId }, select: { id: true } }))) return false
    await setPassword(tx, accountId, passwordHash)
    await tx.prisma.signIn.deleteMany({ where: { accountId, id: { not: signInId } } })
    await revokeLinks(tx, { user: { accountId } })
    const target = { kind: 'account', id: accountId, name }
    await recordAccountEvent(tx, accountId, request, { action: 'account.password_changed', target })
    return true
  })
}

export async function setPassword(
  { prisma }: Pick<Transaction, 'prisma'>,
  accountId: string,
  passwordHash: string | null,
) {
  await prisma.account.update({ where: { id: accountId }, data: { passwordHash, passwordChangedAt: new Date() } })
}
