import type { ApiKeyOut, Scope } from '@workflow-service/contract'
import { DatabaseError, type PoolClient } from 'pg'
import { createApiKey, hashApiKey, parseApiKey } from './api-key-format.ts'
import { type Database, type NamedStatement, runStatement } from './client.ts'
import { newId } from './ids.ts'
import { beforePosition, type TimePosition, type RowOf, toWire, USER_NAME } from './viewer.ts'

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

const API_KEY_COLUMNS = `key.id, key.name, key.prefix, key.scopes,
  (
    SELECT json_build_object('id', users.id, 'name', ${USER_NAME}) FROM users
    WHERE users.organization_id = key.organization_id AND users.id = key.created_by
  ) AS created_by, key.created_at, key.expires_at, key.revoked_at, key.last_used_at`

/** The organization's keys, newest first, including revoked and expired ones. */
export async function listApiKeyPage(
  db: Pick<Database, 'pool'>,
  organizationId: string,
  { limit, after }: { readonly limit: number; readonly after?: TimePosition | undefined },
): Promise<readonly ApiKeyOut[]> {
  const { rows } = await db.pool.query<RowOf<ApiKeyOut>>(
    `SELECT ${API_KEY_COLUMNS} FROM api_keys AS key
     WHERE key.organization_id = $1 AND (key.created_at, key.id) < ($2, $3)
     ORDER BY key.created_at DESC, key.id DESC LIMIT $4`,
    [organizationId, ...beforePosition(after), limit],
  )
  return rows.map((row) => toWire<ApiKeyOut>(row))
}

/** The key of this id, without its secret part. */
export async function findApiKey(
  client: Pick<PoolClient, 'query'>,
  organizationId: string,
  apiKeyId: string,
): Promise<ApiKeyOut | undefined> {
  const { rows } = await client.query<RowOf<ApiKeyOut>>(
    `SELECT ${API_KEY_COLUMNS} FROM api_keys AS key WHERE key.organization_id = $1 AND key.id = $2`,
    [organizationId, apiKeyId],
  )
  return rows[0] && toWire<ApiKeyOut>(rows[0])
}

/** A key to create under an id that the caller chose. */
export interface NewApiKey {
  readonly id: string
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly expiresAt: Date | null
  /** The user who creates it. */
  readonly createdBy: string
}

/**
 * Creates a key. Returns it, which is the only time that it can be shown; undefined if the id is used already.
 * @throws ApiKeyExistsError when the organization has a key with this name.
 */
export async function createApiKeyOf(
  client: Pick<PoolClient, 'query'>,
  organizationId: string,
  { id, name, scopes, expiresAt, createdBy }: NewApiKey,
): Promise<string | undefined> {
  const { key, prefix } = createApiKey()
  try {
    const { rowCount } = await client.query(
      `INSERT INTO api_keys (id, organization_id, name, prefix, key_sha256, scopes, expires_at, created_by)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING`,
      [id, organizationId, name, prefix, hashApiKey(key), scopes, expiresAt, createdBy],
    )
    return rowCount === 1 ? key : undefined
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.constraint !== 'api_keys_organization_id_name_key') throw error
    throw new ApiKeyExistsError(`The organization already has a key named ${JSON.stringify(name)}.`, { cause: error })
  }
}

/** Revokes a key that is in force, or has expired. False if the organization has none with this id that is not revoked. */
export async function revokeApiKeyOf(
  client: Pick<PoolClient, 'query'>,
  organizationId: string,
  apiKeyId: string,
): Promise<boolean> {
  const { rowCount } = await client.query(
    'UPDATE api_keys SET revoked_at = now() WHERE organization_id = $1 AND id = $2 AND revoked_at IS NULL',
    [organizationId, apiKeyId],
  )
  return rowCount === 1
}
