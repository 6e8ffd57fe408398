import type { Scope } from '@workflow-service/contract'
import { createApiKey, hashApiKey, parseApiKey } from './api-key-format.ts'
import { type Database, type NamedStatement, runStatement } from './client.ts'
import { newId } from './ids.ts'

/** A key as its owner may see it: never the key itself, which is not stored. */
export interface ApiKey {
  id: string
  name: string
  prefix: string
  scopes: Scope[]
  createdAt: Date
  expiresAt: Date | null
  revokedAt: Date | null
  lastUsedAt: Date | null
}

/** What a request's key says about the request: whose it is and what it may do. */
export interface Principal {
  readonly apiKeyId: string
  readonly prefix: string
  readonly keySha256: Buffer
  readonly scopes: readonly Scope[]
  readonly expiresAt: Date | null
  readonly isRevoked: boolean
  readonly organizationId: string
  readonly organizationName: string
  readonly isSuspended: boolean
}

/** An organization's key of that name exists already; or the key given is in use. */
export class ApiKeyExistsError extends Error {
  override name = 'ApiKeyExistsError'
}

const FIND_HOLDERS: NamedStatement = {
  name: 'find-key-holders',
  text: `
    SELECT k.id AS "apiKeyId", k.prefix, k.key_sha256 AS "keySha256", k.scopes, k.expires_at AS "expiresAt",
           k.revoked_at IS NOT NULL AS "isRevoked", o.id AS "organizationId", o.name AS "organizationName",
           o.is_suspended AS "isSuspended"
    FROM api_keys k JOIN organizations o ON o.id = k.organization_id
    WHERE k.prefix = ANY ($1::text[])`,
}

// Never backwards: another gateway may have written a later time. Rows are locked in one order, so that two gateways that
// write at once never wait for each other in a circle.
const TOUCH: NamedStatement = {
  name: 'touch-api-keys',
  text: `
    WITH used AS (SELECT * FROM unnest($1::uuid[], $2::timestamptz[]) AS used (id, used_at)),
    locked AS (
      SELECT k.id, used.used_at FROM api_keys k JOIN used ON used.id = k.id
      WHERE k.last_used_at IS NULL OR k.last_used_at < used.used_at
      ORDER BY k.id FOR NO KEY UPDATE OF k
    )
    UPDATE api_keys k SET last_used_at = locked.used_at FROM locked WHERE k.id = locked.id`,
}

const SELECT_COLUMNS = {
  id: true,
  name: true,
  prefix: true,
  scopes: true,
  createdAt: true,
  expiresAt: true,
  revokedAt: true,
  lastUsedAt: true,
} as const

/**
 * The keys of these prefixes with their organizations, in one statement for all that were asked at once; unscoped, since
 * the key is what tells the organization. The caller compares the hash.
 */
export async function findPrincipals(db: Pick<Database, 'pool'>, prefixes: readonly string[]): Promise<Principal[]> {
  const { rows } = await runStatement<Principal>(db, FIND_HOLDERS, [prefixes])
  return rows
}

/** Notes when keys were last used: one statement for what many requests have gathered. */
export async function touchApiKeys(db: Pick<Database, 'pool'>, usedAt: ReadonlyMap<string, Date>): Promise<void> {
  await runStatement(db, TOUCH, [[...usedAt.keys()], [...usedAt.values()]])
}

/**
 * Makes a key, or records the one given, and returns it: the only time that it can be shown.
 * @throws ApiKeyExistsError when the organization has a key of that name, or the key given is known.
 */
export async function issueApiKey(
  db: Pick<Database, 'prisma'>,
  organizationId: string,
  wanted: { name: string; scopes: readonly Scope[]; expiresAt: Date | null; key?: string },
): Promise<{ key: string; apiKey: ApiKey }> {
  const key = wanted.key ?? createApiKey().key
  const prefix = parseApiKey(key)?.prefix
  if (prefix === undefined) throw new TypeError('The key given does not have the form of one.')
  try {
    const apiKey = await db.prisma.apiKey.create({
      data: {
        id: newId(),
        organizationId,
        name: wanted.name,
        prefix,
        keySha256: new Uint8Array(hashApiKey(key)),
        scopes: [...wanted.scopes],
        expiresAt: wanted.expiresAt,
      },
      select: SELECT_COLUMNS,
    })
    return { key, apiKey: toApiKey(apiKey) }
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'P2002') throw error
    throw new ApiKeyExistsError(
      `The organization has a key named ${JSON.stringify(wanted.name)} already${wanted.key ? ', or the key given is in use' : ''}: choose another name.`,
      { cause: error },
    )
  }
}

/** The organization's keys, oldest first, the revoked and expired ones included. */
export async function listApiKeys(db: Pick<Database, 'prisma'>, organizationId: string): Promise<ApiKey[]> {
  const rows = await db.prisma.apiKey.findMany({
    where: { organizationId },
    orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
    select: SELECT_COLUMNS,
  })
  return rows.map(toApiKey)
}

/** Revokes the key of that id, prefix or name; null when the organization has none. A revoked one keeps its time. */
export async function revokeApiKey(
  db: Pick<Database, 'prisma'>,
  organizationId: string,
  which: { id: string } | { prefix: string } | { name: string },
): Promise<ApiKey | null> {
  await db.prisma.apiKey.updateMany({
    where: { organizationId, ...which, revokedAt: null },
    data: { revokedAt: new Date() },
  })
  const row = await db.prisma.apiKey.findFirst({ where: { organizationId, ...which }, select: SELECT_COLUMNS })
  return row && toApiKey(row)
}

function toApiKey(row: Omit<ApiKey, 'scopes'> & { scopes: string[] }): ApiKey {
  return { ...row, scopes: row.scopes as Scope[] }
}
