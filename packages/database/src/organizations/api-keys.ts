import type { ApiKeyOut, Scope } from '@workflow-service/contract'
import {
  column,
  type Connection,
  type Database,
  type Db,
  inPrismaTransaction,
  newId,
  paging,
  type PrismaDb,
  queryRows,
  type RowOfStatement,
  runStatement,
  statement,
  violatedConstraint,
} from '../connection/index.ts'
import { createApiKey, hashApiKey, prefixOfApiKey } from './api-key-format.ts'
import { type AuditedBy, changedFields, recordAuditEvent } from './audit-events.ts'
import { assertQuota } from './quotas.ts'
import { USER_NAME } from './visibility.ts'

/** The organization has a key with this name, or the given key is in use. */
export class ApiKeyExistsError extends Error {
  override name = 'ApiKeyExistsError'
}

const FIND_PRINCIPALS = statement('organizations/find-principals', {
  apiKeyId: column.uuid,
  prefix: column.text(),
  keySha256: column.bytea,
  scopes: column.textArray<Scope>(),
  /**
   * Milliseconds from the look-up until the key expires, by the database's clock; not positive if it has, null if it
   * never does.
   */
  expiresInMs: column.float8.orNull,
  isRevoked: column.boolean,
  organizationId: column.uuid,
  organizationName: column.text(),
  isSuspended: column.boolean,
})

/** The identity and rights of a request with this key (contract README, "Authentication"). */
export type Principal = RowOfStatement<typeof FIND_PRINCIPALS>

const TOUCH_API_KEYS = statement('organizations/touch-api-keys', {})

/**
 * Finds the keys with these prefixes and their organizations. Unscoped, because the organization follows from the key.
 * The caller compares the hash.
 */
export async function findPrincipals(db: Db, prefixes: readonly string[]): Promise<Principal[]> {
  const { rows } = await runStatement(db, FIND_PRINCIPALS, [prefixes])
  return rows
}

/** Records how many milliseconds ago keys were last used, by their ids. */
export async function touchApiKeys(db: Db, agesMs: ReadonlyMap<string, number>): Promise<void> {
  await runStatement(db, TOUCH_API_KEYS, [[...agesMs.keys()], [...agesMs.values()]])
}

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
 * Stores a given or a new key of the organization. Returns it, which is the only time that it can be shown; undefined
 * if the id is used already.
 * @throws ApiKeyExistsError when the organization has a key with this name, or the given key is in use
 */
export async function storeApiKey(
  db: PrismaDb,
  { id = newId(), name, scopes, expiresAt, key = createApiKey().key }: NewApiKey,
  by: AuditedBy,
): Promise<string | undefined> {
  const { organizationId, userId: createdBy } = by.principal
  const prefix = prefixOfApiKey(key)
  if (prefix === undefined) throw new TypeError('The given key does not have the format of an API key.')
  try {
    return await inPrismaTransaction(db, async (tx) => {
      const keySha256 = Uint8Array.from(hashApiKey(key))
      await tx.prisma.apiKey.create({
        data: { id, organizationId, name, prefix, keySha256, scopes: [...scopes], expiresAt, createdBy },
      })
      await assertQuota(tx, by, 'api_keys')
      await recordAuditEvent(tx, {
        ...by,
        action: 'api_key.created',
        target: { kind: 'api_key', id, name },
        changes: changedFields({}, { scopes, expires_at: expiresAt?.toISOString() ?? null }),
      })
      return key
    })
  } catch (error) {
    const constraint = violatedConstraint(error)
    if (constraint === undefined) throw error
    if (constraint === 'api_keys_pkey') return undefined
    throw new ApiKeyExistsError(
      `The organization already has a key named ${JSON.stringify(name)}, or the given key is in use: choose another.`,
      { cause: error },
    )
  }
}

/** Stores a given or a new key under a new id, and reads what was stored. @throws as `storeApiKey` */
export async function issueApiKey(
  db: Database,
  wanted: Omit<NewApiKey, 'id'>,
  by: AuditedBy,
): Promise<{ key: string; apiKey: ApiKeyOut }> {
  const id = newId()
  const key = await storeApiKey(db, { ...wanted, id }, by)
  const apiKey = await findApiKey(db, by.principal.organizationId, id)
  if (key === undefined || !apiKey) throw new Error('A new id is taken')
  return { key, apiKey }
}

/**
 * Revokes the key of the organization with this id, prefix or name. Undefined if there is none. A revoked key keeps its
 * time.
 */
export async function revokeApiKey(
  db: Database,
  which: { id: string } | { prefix: string } | { name: string },
  by: AuditedBy,
): Promise<ApiKeyOut | undefined> {
  const { organizationId } = by.principal
  return await inPrismaTransaction(db, async (tx) => {
    const stored = await tx.prisma.apiKey.findFirst({ where: { organizationId, ...which } })
    if (!stored) return undefined
    const { id, name } = stored
    const { count } = await tx.prisma.apiKey.updateMany({
      where: { id, revokedAt: null },
      data: { revokedAt: new Date() },
    })
    const target = { kind: 'api_key', id, name }
    if (count === 1) await recordAuditEvent(tx, { ...by, action: 'api_key.revoked', target })
    return await findApiKey({ pool: tx }, organizationId, id)
  })
}

/** The condition that a key is not of a deleted organization that had the id before: those have their ids as names. */
export const IS_OWN_KEY = 'NOT (key.revoked_at IS NOT NULL AND key.name = key.id::text)'

// By hand: the name of the person who created a key is that of other lists.
const SELECT_KEYS = `
  SELECT key.id, key.name, key.prefix, key.scopes, key.created_at, key.expires_at, key.revoked_at, key.last_used_at,
    CASE WHEN users.id IS NOT NULL THEN json_build_object('id', users.id, 'name', ${USER_NAME}) END AS created_by
  FROM api_keys AS key LEFT JOIN users ON users.id = key.created_by
  WHERE key.organization_id = $1 AND ${IS_OWN_KEY}`

/** The organization's keys, newest first, including revoked and expired ones. */
export async function listApiKeys(
  db: Db,
  organizationId: string,
  { limit, after }: { readonly limit?: number; readonly after?: paging.TimePosition | undefined } = {},
): Promise<ApiKeyOut[]> {
  return await queryRows<ApiKeyOut>(
    db,
    `${SELECT_KEYS} AND (key.created_at, key.id) < ($2, $3) ORDER BY key.created_at DESC, key.id DESC LIMIT $4`,
    [organizationId, ...paging.positionParams(after), limit],
  )
}

/** The key of this id, without its secret part, which is not stored. */
export async function findApiKey(db: Connection, organizationId: string, id: string): Promise<ApiKeyOut | undefined> {
  const [key] = await queryRows<ApiKeyOut>(db, `${SELECT_KEYS} AND key.id = $2`, [organizationId, id])
  return key
}
