import { hash, randomBytes } from 'node:crypto'
import type { Role, SignInOut } from '@workflow-service/contract'
import {
  boolean,
  type Database,
  datesToIso,
  type Db,
  inTransaction,
  newId,
  orNull,
  type Queryable,
  type RowOf,
  runStatement,
  statement,
  text,
  timestamptz,
  uuid,
} from '../connection/index.ts'
import { type AuditPrincipal, recordAuditEvent } from '../organizations/index.ts'

/** The person of a request to the application, as a user of the organization in which the person works. */
export interface SignedInUser {
  readonly signInId: string
  readonly accountId: string
  readonly userId: string
  readonly organizationId: string
  readonly role: Role
  readonly name: string
  readonly email: string
  /** Until when sensitive changes are allowed; null: the password has to be confirmed first. */
  readonly confirmedUntil: Date | null
}

export type SignInMethod = 'password' | 'oidc' | 'link'

export interface NewSignIn {
  readonly accountId: string
  readonly organizationId: string
  readonly method: SignInMethod
  readonly address: string | null
  readonly userAgent: string | null
}

/** A sign-in ends when it was not used for so long, and at the latest after the second. */
export const SIGN_IN_IDLE_DAYS = 7
export const SIGN_IN_MAX_DAYS = 30
export const CONFIRMATION_MINUTES = 10

/** A sign-in made before the person was signed out of the organization does not count there, wherever it was at that moment. */
const IS_AFTER_SIGN_OUT = '(u.signed_out_at IS NULL OR s.created_at >= u.signed_out_at)'

const FIND_SIGNED_IN_USER = statement(
  'people/find-signed-in-user',
  {
    signInId: uuid,
    accountId: uuid,
    userId: uuid,
    organizationId: uuid,
    role: text<Role>(),
    name: text(),
    email: text(),
    confirmedUntil: orNull(timestamptz),
    isStale: boolean,
  },
  { CONFIRMATION_MINUTES, SIGN_IN_IDLE_DAYS, IS_AFTER_SIGN_OUT },
)

const TOUCH_SIGN_IN = statement('people/touch-sign-in', {})

/** Returns the hash under which a token of a cookie or of a link is stored. */
export function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

/** Makes a token: 32 random bytes as base64url. */
export function newToken(): string {
  return randomBytes(32).toString('base64url')
}

/** Finds the person of a sign-in's token; undefined if it ended or the person lost the role. Notes the use, to the minute. */
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
 * Returns the organization in which the person of each sign-in works, for those that have not ended and whose person has a role
 * there. Does not count as a use.
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
export async function createSignIn(client: Queryable, signIn: NewSignIn): Promise<string> {
  const token = newToken()
  // Like a confirmation: the person has just signed in.
  await client.query(
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

const IS_ALIVE = `expires_at > now() AND last_seen_at > now() - interval '${SIGN_IN_IDLE_DAYS} days'`
const LIST_MAX_COUNT = 100

/** Lists the sign-ins of the person that have not ended, the newest 100. */
export async function listSignIns(
  db: Db,
  { accountId, signInId }: Pick<SignedInUser, 'accountId' | 'signInId'>,
): Promise<SignInOut[]> {
  const { rows } = await db.pool.query<RowOf<SignInOut>>(
    `SELECT id, method, address, user_agent, created_at, last_seen_at, id = $2 AS is_current
     FROM sign_ins WHERE account_id = $1 AND ${IS_ALIVE} ORDER BY created_at DESC LIMIT ${LIST_MAX_COUNT}`,
    [accountId, signInId],
  )
  return rows.map((row) => datesToIso<SignInOut>(row))
}

/** Ends one of the person's sign-ins. Returns false if the person has no such sign-in. */
export async function endSignIn(
  db: Database,
  signInId: string,
  { principal, requestId }: { principal: AuditPrincipal & { accountId: string }; requestId: string },
): Promise<boolean> {
  return await inTransaction(db, async (client) => {
    const { rows } = await client.query<{ userAgent: string | null }>(
      'DELETE FROM sign_ins WHERE account_id = $1 AND id = $2 RETURNING user_agent AS "userAgent"',
      [principal.accountId, signInId],
    )
    if (!rows[0]) return false
    const target = { kind: 'sign_in', id: signInId, name: rows[0].userAgent ?? '' }
    await recordAuditEvent(client, { principal, action: 'account.signed_out', target, requestId })
    return true
  })
}

/** Notes that the person has confirmed with the password. */
export async function confirmSignIn(
  db: Database,
  { principal, requestId }: { principal: AuditPrincipal & { signInId: string }; requestId: string },
): Promise<void> {
  await inTransaction(db, async (client) => {
    await client.query('UPDATE sign_ins SET confirmed_at = now() WHERE id = $1', [principal.signInId])
    await recordAuditEvent(client, { principal, action: 'account.confirmed', requestId })
  })
}

/**
 * Makes another organization of the person the one in which the person works. `signed_out`: this sign-in was ended there. Resolves to
 * undefined if it is none of the person's.
 */
export async function switchOrganization(
  db: Db,
  organizationId: string,
  {
    principal: { accountId, signInId, name, address },
    requestId,
  }: { principal: AuditPrincipal & { accountId: string; signInId: string }; requestId: string },
): Promise<'switched' | 'signed_out' | undefined> {
  return await inTransaction(db, async (client) => {
    const { rows } = await client.query<{ userId: string; mayEnter: boolean }>(
      `SELECT u.id AS "userId", ${IS_AFTER_SIGN_OUT} AS "mayEnter"
       FROM sign_ins s JOIN users u ON u.account_id = s.account_id
       JOIN organizations o ON o.id = u.organization_id AND o.deleted_at IS NULL
       WHERE s.id = $1 AND s.account_id = $2 AND u.organization_id = $3 AND u.role IS NOT NULL AND u.deactivated_at IS NULL`,
      [signInId, accountId, organizationId],
    )
    const [found] = rows
    if (!found) return undefined
    if (!found.mayEnter) return 'signed_out'
    // Whether the person may be there is read again with each request.
    await client.query('UPDATE sign_ins SET organization_id = $2 WHERE id = $1', [signInId, organizationId])
    await recordAuditEvent(client, {
      principal: { organizationId, userId: found.userId, name, address },
      action: 'account.signed_in',
      target: { kind: 'account', id: accountId, name },
      changes: [{ field: 'method', old: null, new: 'switch' }],
      requestId,
    })
    return 'switched'
  })
}

/** Deletes up to `limit` sign-ins, and as many links, that ended a while ago. Returns how many. */
export async function deleteEndedSignIns(db: Db, limit: number): Promise<number> {
  const expired = await db.pool.query(
    `DELETE FROM sign_ins WHERE token_sha256 = ANY (ARRAY(
       SELECT token_sha256 FROM sign_ins WHERE expires_at < now() ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED))`,
    [limit],
  )
  const links = await db.pool.query(
    `DELETE FROM one_time_links WHERE token_sha256 = ANY (ARRAY(
       SELECT token_sha256 FROM one_time_links WHERE expires_at < now() - interval '7 days'
       ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED))`,
    [limit],
  )
  return Math.max(expired.rowCount ?? 0, links.rowCount ?? 0)
}
