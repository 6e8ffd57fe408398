import { hash, randomBytes } from 'node:crypto'
import type { Role, SignInOut } from '@workflow-service/contract'
import {
  column,
  type Database,
  type Db,
  deleteRows,
  inPrismaTransaction,
  newId,
  type PrismaDb,
  type Queryable,
  readClock,
  type RowOfStatement,
  runStatement,
  statement,
} from '../connection/index.ts'
import { type AuditPrincipal, recordAuditEvent } from '../organizations/index.ts'

type SignInMethod = 'password' | 'oidc' | 'link'

export interface NewSignIn {
  readonly accountId: string
  readonly organizationId: string
  readonly method: SignInMethod
  readonly address: string | null
  readonly userAgent: string | null
}

/** The person of a request, with the id of the request. */
export interface AuditedRequest {
  readonly principal: AuditPrincipal & { readonly accountId: string; readonly signInId: string; readonly email: string }
  readonly requestId: string
}

/** A sign-in ends when it was not used for so long, and at the latest after the second. */
const SIGN_IN_IDLE_DAYS = 7
export const SIGN_IN_MAX_DAYS = 30
const CONFIRMATION_MINUTES = 10

/**
 * A sign-in made before the person was signed out of the organization does not count there, wherever it was at that
 * moment.
 */
const IS_AFTER_SIGN_OUT = '(u.signed_out_at IS NULL OR s.created_at >= u.signed_out_at)'

const FIND_SIGNED_IN_USER = statement(
  'people/find-signed-in-user',
  {
    signInId: column.uuid,
    accountId: column.uuid,
    userId: column.uuid,
    organizationId: column.uuid,
    role: column.text<Role>(),
    name: column.text(),
    email: column.text(),
    /** Until when sensitive changes are allowed; null: the password has to be confirmed first. */
    confirmedUntil: column.timestamptz.orNull,
    isStale: column.boolean,
  },
  { CONFIRMATION_MINUTES, SIGN_IN_IDLE_DAYS, IS_AFTER_SIGN_OUT },
)

/** The person of a request to the application, as a user of the organization in which the person works. */
export type SignedInUser = Omit<RowOfStatement<typeof FIND_SIGNED_IN_USER>, 'isStale'>

const TOUCH_SIGN_IN = statement('people/touch-sign-in', {})

/** Returns the hash under which a token of a cookie or of a link is stored. */
export function hashToken(token: string): Buffer<ArrayBuffer> {
  return Buffer.from(hash('sha256', token, 'buffer'))
}

/** Makes a token: 32 random bytes as base64url. */
export function newToken(): string {
  return randomBytes(32).toString('base64url')
}

/**
 * Finds the person of a sign-in's token; undefined if it ended or the person lost the role. Notes the use, to the
 * minute.
 */
export async function findSignedInUser(db: Database, token: string): Promise<SignedInUser | undefined> {
  const tokenSha256 = hashToken(token)
  const { rows } = await runStatement(db, FIND_SIGNED_IN_USER, [tokenSha256])
  const [found] = rows
  if (!found) return undefined
  const { isStale, ...user } = found
  if (isStale) await runStatement(db, TOUCH_SIGN_IN, [tokenSha256])
  return user
}

/**
 * Returns the organization in which the person of each sign-in works, for those that have not ended and whose person
 * has a role there. Does not count as a use.
 */
export async function findOpenSignIns(db: Db, signInIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const { rows } = await db.pool.query<{ id: string; organizationId: string }>(
    `SELECT s.id, u.organization_id AS "organizationId"
     FROM sign_ins s
     JOIN accounts a ON a.id = s.account_id AND a.disabled_at IS NULL
     JOIN users u ON u.organization_id = s.organization_id AND u.account_id = s.account_id
       AND u.role IS NOT NULL AND u.deactivated_at IS NULL AND ${IS_AFTER_SIGN_OUT}
     WHERE s.id = ANY ($1::uuid[]) AND s.expires_at > now()
       AND s.last_seen_at > now() - interval '${SIGN_IN_IDLE_DAYS} days'`,
    [signInIds],
  )
  return new Map(rows.map((row) => [row.id, row.organizationId]))
}

/** Creates a sign-in, and returns the token for its cookie. */
export async function createSignIn(tx: Queryable, signIn: NewSignIn): Promise<string> {
  const token = newToken()
  // Like a confirmation: the person has just signed in. By hand: its times are compared with others of the database's
  // clock.
  await tx.query(
    `INSERT INTO sign_ins (token_sha256, id, account_id, organization_id, method, expires_at, confirmed_at, address, user_agent)
     VALUES ($1, $2, $3, $4, $5, now() + interval '${SIGN_IN_MAX_DAYS} days', now(), $6, left($7, 500))`,
    [
      hashToken(token),
      newId(),
      signIn.accountId,
      signIn.organizationId,
      signIn.method,
      signIn.address,
      signIn.userAgent,
    ],
  )
  return token
}

const LIST_MAX_COUNT = 100

/** Lists the sign-ins of the person that have not ended, the newest 100. */
export async function listSignIns(
  db: Database,
  { accountId, signInId }: Pick<SignedInUser, 'accountId' | 'signInId'>,
): Promise<SignInOut[]> {
  const now = await readClock(db.pool)
  const signIns = await db.prisma.signIn.findMany({
    where: {
      accountId,
      expiresAt: { gt: now },
      lastSeenAt: { gt: new Date(now.getTime() - SIGN_IN_IDLE_DAYS * 86_400_000) },
    },
    orderBy: { createdAt: 'desc' },
    take: LIST_MAX_COUNT,
  })
  return signIns.map(({ id, method, address, userAgent, createdAt, lastSeenAt }) => ({
    id,
    method: method as SignInMethod,
    address,
    user_agent: userAgent,
    created_at: createdAt.toISOString(),
    last_seen_at: lastSeenAt.toISOString(),
    is_current: id === signInId,
  }))
}

/** Ends one of the person's sign-ins. Returns false if the person has no such sign-in. */
export async function endSignIn(db: Database, signInId: string, request: AuditedRequest): Promise<boolean> {
  return await inPrismaTransaction(db, async (tx) => {
    const where = { accountId: request.principal.accountId, id: signInId }
    const signIn = await tx.prisma.signIn.findFirst({ where, select: { userAgent: true } })
    // Of two requests at the same time, one ends it.
    const { count } = await tx.prisma.signIn.deleteMany({ where })
    if (!signIn || count === 0) return false
    const target = { kind: 'sign_in', id: signInId, name: signIn.userAgent ?? '' }
    await recordAuditEvent(tx, { ...request, action: 'account.signed_out', target })
    return true
  })
}

/** Notes that the person has confirmed with the password. Resolves to false if the sign-in was ended meanwhile. */
export async function confirmSignIn(db: Database, request: AuditedRequest): Promise<boolean> {
  return await inPrismaTransaction(db, async (tx) => {
    // By the database's clock, by which the confirmation ends.
    const confirmed = await tx.query('UPDATE sign_ins SET confirmed_at = now() WHERE id = $1', [
      request.principal.signInId,
    ])
    if (confirmed.rowCount === 0) return false
    await recordAuditEvent(tx, { ...request, action: 'account.confirmed' })
    return true
  })
}

/**
 * Makes another organization of the person the one in which the person works. `signed_out`: this sign-in was ended
 * there, or meanwhile. Resolves to undefined if it is none of the person's.
 */
export async function switchOrganization(
  db: PrismaDb,
  organizationId: string,
  { principal: { accountId, signInId, name, address }, requestId }: AuditedRequest,
): Promise<'switched' | 'signed_out' | undefined> {
  return await inPrismaTransaction(db, async (tx) => {
    const { rows } = await tx.query<{ userId: string; mayEnter: boolean }>(
      `SELECT u.id AS "userId", ${IS_AFTER_SIGN_OUT} AS "mayEnter"
       FROM sign_ins s JOIN users u ON u.account_id = s.account_id
       JOIN organizations o ON o.id = u.organization_id AND o.deleted_at IS NULL
       WHERE s.id = $1 AND s.account_id = $2 AND u.organization_id = $3 AND u.role IS NOT NULL AND u.deactivated_at IS NULL`,
      [signInId, accountId, organizationId],
    )
    const [found] = rows
    if (!found) return undefined
    if (!found.mayEnter) return 'signed_out'
    // Before the sign-in, as where the password changes.
    await tx.query('SELECT FROM accounts WHERE id = $1 FOR NO KEY UPDATE', [accountId])
    // Whether the person may be there is read again with each request.
    const { count } = await tx.prisma.signIn.updateMany({ where: { id: signInId }, data: { organizationId } })
    if (count === 0) return 'signed_out'
    await tx.prisma.account.updateMany({ where: { id: accountId }, data: { lastOrganizationId: organizationId } })
    await recordAuditEvent(tx, {
      principal: { organizationId, userId: found.userId, name, address },
      action: 'account.signed_in',
      target: { kind: 'account', id: accountId, name },
      changes: [{ field: 'method', old: null, new: 'switch' }],
      requestId,
    })
    return 'switched'
  })
}

/** Deletes up to `limit` sign-ins, and as many links, that ended at latest. Returns the larger of both numbers. */
export async function deleteEndedSignIns(db: Db, limit: number): Promise<number> {
  const key = 'token_sha256'
  const signIns = { table: 'sign_ins', key, where: 'expires_at < now() ORDER BY expires_at' }
  const links = { table: 'one_time_links', key, where: `expires_at < now() - interval '7 days' ORDER BY expires_at` }
  return Math.max(await deleteRows(db, signIns, limit), await deleteRows(db, links, limit))
}
