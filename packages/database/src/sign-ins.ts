import { hash, randomBytes } from 'node:crypto'
import type { Role } from '@workflow-service/contract'
import type { PoolClient } from 'pg'
import { type Database, runStatement } from './client.ts'
import { newId } from './ids.ts'

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

const FIND_SIGNED_IN_USER = {
  name: 'find_signed_in_user',
  text: `
SELECT s.id AS "signInId", s.account_id AS "accountId", u.id AS "userId", u.organization_id AS "organizationId", u.role,
       a.name, a.email,
       CASE WHEN s.confirmed_at > now() - interval '${CONFIRMATION_MINUTES} minutes'
         THEN s.confirmed_at + interval '${CONFIRMATION_MINUTES} minutes' END AS "confirmedUntil",
       s.last_seen_at < now() - interval '1 minute' AS "isStale"
FROM sign_ins s
JOIN accounts a ON a.id = s.account_id AND a.disabled_at IS NULL
JOIN users u ON u.organization_id = s.organization_id AND u.account_id = s.account_id
  AND u.role IS NOT NULL AND u.deactivated_at IS NULL
WHERE s.token_sha256 = $1 AND s.expires_at > now() AND s.last_seen_at > now() - interval '${SIGN_IN_IDLE_DAYS} days'`,
}

const TOUCH_SIGN_IN = {
  name: 'touch_sign_in',
  text: `UPDATE sign_ins SET last_seen_at = now() WHERE token_sha256 = $1 AND last_seen_at < now() - interval '1 minute'`,
}

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
  const { rows } = await runStatement<SignedInUser & { isStale: boolean }>(db, FIND_SIGNED_IN_USER, [tokenSha256])
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
export async function findOpenSignIns(
  db: Pick<Database, 'pool'>,
  signInIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const { rows } = await db.pool.query<{ id: string; organizationId: string }>(
    `SELECT s.id, u.organization_id AS "organizationId"
     FROM sign_ins s
     JOIN accounts a ON a.id = s.account_id AND a.disabled_at IS NULL
     JOIN users u ON u.organization_id = s.organization_id AND u.account_id = s.account_id
       AND u.role IS NOT NULL AND u.deactivated_at IS NULL
     WHERE s.id = ANY ($1::uuid[]) AND s.expires_at > now()
       AND s.last_seen_at > now() - interval '${SIGN_IN_IDLE_DAYS} days'`,
    [signInIds],
  )
  return new Map(rows.map((row) => [row.id, row.organizationId]))
}

/** Creates a sign-in, and returns the token for its cookie. */
export async function createSignIn(client: Pick<PoolClient, 'query'>, signIn: NewSignIn): Promise<string> {
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
