import type { Scope } from '@workflow-service/contract'
import { createApiKey, hashApiKey, parseApiKey } from './api-key-format.ts'
import { type Database, type NamedStatement, runStatement } from './client.ts'
import { newId } from './ids.ts'

/** A key without its secret part, which is not stored. */
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

/** The identity and rights of a request with this key (contract README, "Authentication"). */
export interface Principal {
  readonly apiKeyId: string
  readonly prefix: string
  readonly keySha256: Buffer
  readonly scopes: readonly Scope[]
  /** Milliseconds from the look-up until the key expires, by the database's clock; not positive if it has, null if it never does. */
  readonly expiresInMs: number | null
  readonly isRevoked: boolean
  readonly organizationId: string
  readonly organizationName: string
  readonly isSuspended: boolean
}

/** The organization has a key with this name, or the given key is in use. */
export class ApiKeyExistsError extends Error {
  override name = 'ApiKeyExistsError'
}

const FIND_PRINCIPALS: NamedStatement = {
  name: 'find-principals',
  text: `
    SELECT api_keys.id AS "apiKeyId", api_keys.prefix, api_keys.key_sha256 AS "keySha256", api_keys.scopes,
      CASE WHEN isfinite(api_keys.expires_at)
        THEN (extract(epoch FROM api_keys.expires_at - clock_timestamp()) * 1000)::double precision
      END AS "expiresInMs",
      api_keys.revoked_at IS NOT NULL AS "isRevoked",
      organizations.id AS "organizationId", organizations.name AS "organizationName",
      organizations.is_suspended AS "isSuspended"
    FROM api_keys JOIN organizations ON organizations.id = api_keys.organization_id
    WHERE api_keys.prefix = ANY ($1::text[])`,
}

// Another gateway may have written a later time, which stays. Rows are locked in the order of their ids, so that two gateways
// do not deadlock.
const TOUCH_API_KEYS: NamedStatement = {
  name: 'touch-api-keys',
  text: `
    WITH used AS (SELECT * FROM unnest($1::uuid[], $2::timestamptz[]) AS used (id, used_at)),
    locked AS (
      SELECT api_keys.id, used.used_at FROM api_keys JOIN used ON used.id = api_keys.id
      WHERE api_keys.last_used_at IS NULL OR api_keys.last_used_at < used.used_at
      ORDER BY api_keys.id FOR NO KEY UPDATE OF api_keys
    )
    UPDATE api_keys SET last_used_at = locked.used_at FROM locked WHERE api_keys.id = locked.id`,
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
 * Finds the keys with these prefixes and their organizations. Unscoped, because the organization follows from the key. The
 * caller compares the hash.
 */
export async function findPrincipals(db: Pick<Database, 'pool'>, prefixes: readonly string[]): Promise<Principal[]> {
  const { rows } = await runStatement<Principal>(db, FIND_PRINCIPALS, [prefixes])
  return rows
}

/** Records when keys were last used, by their ids. */
export async function touchApiKeys(db: Pick<Database, 'pool'>, usedAt: ReadonlyMap<string, Date>): Promise<void> {
  await runStatement(db, TOUCH_API_KEYS, [[...usedAt.keys()], [...usedAt.values()]])
}

/**
 * Stores a given or a new key. Returns it, which is the only time that it can be shown.
 * @throws ApiKeyExistsError when the organization has a key with this name, or the given key is in use.
 */
export async function issueApiKey(
  db: Pick<Database, 'prisma'>,
  organizationId: string,
  wanted: { name: string; scopes: readonly Scope[]; expiresAt: Date | null; key?: string },
): Promise<{ key: string; apiKey: ApiKey }> {
  const key = wanted.key ?? createApiKey().key
  const prefix = parseApiKey(key)?.prefix
  if (prefix === undefined) throw new TypeError('The given key does not have the format of an API key.')
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
      `The organization already has a key named ${JSON.stringify(wanted.name)}${wanted.key ? ', or the given key is in use' : ''}: choose another name.`,
      { cause: error },
    )
  }
}

/** The organization's keys, oldest first, including revoked and expired ones. */
export async function listApiKeys(db: Pick<Database, 'prisma'>, organizationId: string): Promise<ApiKey[]> {
  const rows = await db.prisma.apiKey.findMany({
    where: { organizationId },
    orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
    select: SELECT_COLUMNS,
  })
  return rows.map(toApiKey)
}

/** Revokes the key with this id, prefix or name. Null when the organization has none. A revoked key keeps its time. */
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
