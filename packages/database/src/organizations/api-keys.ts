import type { ApiKeyOut, Scope } from '@workflow-service/contract'
import {
  boolean,
  bytea,
  type Database,
  datesToIso,
  type Db,
  float8,
  inTransaction,
  isUniqueViolation,
  newId,
  orNull,
  positionParams,
  type Queryable,
  type RowOf,
  runStatement,
  statement,
  text,
  textArray,
  type TimePosition,
  uuid,
} from '../connection/index.ts'
import { createApiKey, hashApiKey, parseApiKey } from './api-key-format.ts'
import { type AuditedBy, changedFields, recordAuditEvent } from './audit-events.ts'
import { USER_NAME } from './visibility.ts'
import { assertQuotas } from './quotas.ts'

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

const FIND_PRINCIPALS = statement('organizations/find-principals', {
  apiKeyId: uuid,
  prefix: text(),
  keySha256: bytea,
  scopes: textArray<Scope>(),
  expiresInMs: orNull(float8),
  isRevoked: boolean,
  organizationId: uuid,
  organizationName: text(),
  isSuspended: boolean,
})

const TOUCH_API_KEYS = statement('organizations/touch-api-keys', {})

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
export async function findPrincipals(db: Db, prefixes: readonly string[]): Promise<Principal[]> {
  const { rows } = await runStatement(db, FIND_PRINCIPALS, [prefixes])
  return rows
}

/** Records when keys were last used, by their ids. */
export async function touchApiKeys(db: Db, usedAt: ReadonlyMap<string, Date>): Promise<void> {
  await runStatement(db, TOUCH_API_KEYS, [[...usedAt.keys()], [...usedAt.values()]])
}

/** A key to store. */
export interface NewApiKey {
  /** Default: a new one. */
  readonly id?: string
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly expiresAt: Date | null
  /** Default: a new one. */
  readonly key?: string
}

/**
 * Stores a given or a new key, with an audit event if it is known who creates it. Returns it, which is the only time that it can
 * be shown; undefined if the id is used already.
 * @throws ApiKeyExistsError when the organization has a key with this name, or the given key is in use.
 */
export async function storeApiKey(
  db: Db,
  organizationId: string,
  { id = newId(), name, scopes, expiresAt, key = createApiKey().key }: NewApiKey,
  by?: AuditedBy,
): Promise<string | undefined> {
  const prefix = parseApiKey(key)?.prefix
  if (prefix === undefined) throw new TypeError('The given key does not have the format of an API key.')
  try {
    return await inTransaction(db, async (client) => {
      if (by) await assertQuotas(client, by)
      const { rowCount } = await client.query(
        `INSERT INTO api_keys (id, organization_id, name, prefix, key_sha256, scopes, expires_at, created_by)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING`,
        [id, organizationId, name, prefix, hashApiKey(key), scopes, expiresAt, by?.principal.userId ?? null],
      )
      if (rowCount !== 1) return undefined
      if (by) {
        await recordAuditEvent(client, {
          ...by,
          action: 'api_key.created',
          target: { kind: 'api_key', id, name },
          changes: changedFields({}, { scopes, expires_at: expiresAt?.toISOString() ?? null }),
        })
      }
      return key
    })
  } catch (error) {
    if (!isUniqueViolation(error)) throw error
    throw new ApiKeyExistsError(
      `The organization already has a key named ${JSON.stringify(name)}, or the given key is in use: choose another.`,
      { cause: error },
    )
  }
}

/** Stores a given or a new key under a new id, and reads what was stored. @throws ApiKeyExistsError */
export async function issueApiKey(
  db: Pick<Database, 'pool' | 'prisma'>,
  organizationId: string,
  wanted: Omit<NewApiKey, 'id'>,
  by?: AuditedBy,
): Promise<{ key: string; apiKey: ApiKey }> {
  const id = newId()
  const key = await storeApiKey(db, organizationId, { ...wanted, id }, by)
  if (key === undefined) throw new Error('A new id is taken')
  const apiKey = await db.prisma.apiKey.findUniqueOrThrow({ where: { id, organizationId }, select: SELECT_COLUMNS })
  return { key, apiKey: toApiKey(apiKey) }
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

/**
 * Revokes the key with this id, prefix or name, with an audit event if it is known who does. Null when the organization has none. A
 * revoked key keeps its time.
 */
export async function revokeApiKey(
  db: Pick<Database, 'pool' | 'prisma'>,
  organizationId: string,
  which: { id: string } | { prefix: string } | { name: string },
  by?: AuditedBy,
): Promise<ApiKey | null> {
  const read = () => db.prisma.apiKey.findFirst({ where: { organizationId, ...which }, select: SELECT_COLUMNS })
  const stored = await read()
  if (!stored) return null
  const { id, name } = stored
  await inTransaction(db, async (client) => {
    const { rowCount } = await client.query(
      'UPDATE api_keys SET revoked_at = now() WHERE organization_id = $1 AND id = $2 AND revoked_at IS NULL',
      [organizationId, id],
    )
    const target = { kind: 'api_key', id, name }
    if (rowCount === 1 && by) await recordAuditEvent(client, { ...by, action: 'api_key.revoked', target })
  })
  const row = await read()
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
  db: Db,
  organizationId: string,
  { limit, after }: { readonly limit: number; readonly after?: TimePosition | undefined },
): Promise<readonly ApiKeyOut[]> {
  const { rows } = await db.pool.query<RowOf<ApiKeyOut>>(
    `SELECT ${API_KEY_COLUMNS} FROM api_keys AS key
     WHERE key.organization_id = $1 AND (key.created_at, key.id) < ($2, $3)
     ORDER BY key.created_at DESC, key.id DESC LIMIT $4`,
    [organizationId, ...positionParams(after), limit],
  )
  return rows.map((row) => datesToIso<ApiKeyOut>(row))
}

/** The key of this id, without its secret part. */
export async function findApiKey(
  client: Queryable,
  organizationId: string,
  apiKeyId: string,
): Promise<ApiKeyOut | undefined> {
  const { rows } = await client.query<RowOf<ApiKeyOut>>(
    `SELECT ${API_KEY_COLUMNS} FROM api_keys AS key WHERE key.organization_id = $1 AND key.id = $2`,
    [organizationId, apiKeyId],
  )
  return rows[0] && datesToIso<ApiKeyOut>(rows[0])
}
