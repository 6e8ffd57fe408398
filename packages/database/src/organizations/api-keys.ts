import type { ApiKeyOut, Scope } from '@workflow-service/contract'
import {
  column,
  type Db,
  inPrismaTransaction,
  newId,
  type paging,
  type PrismaDb,
  type RowOfStatement,
  runStatement,
  statement,
  violatedConstraint,
} from '../connection/index.ts'
import { createApiKey, hashApiKey, parseApiKey } from './api-key-format.ts'
import { type AuditedBy, changedFields, recordAuditEvent } from './audit-events.ts'
import { assertQuotas } from './quotas.ts'
import { type NamedUser, USER_NAME_FIELDS, userName } from './visibility.ts'

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
 * Finds the keys with these prefixes and their organizations. Unscoped, because the organization follows from the key.
 * The caller compares the hash.
 */
export async function findPrincipals(db: Db, prefixes: readonly string[]): Promise<Principal[]> {
  const { rows } = await runStatement(db, FIND_PRINCIPALS, [prefixes])
  return rows
}

/** Records when keys were last used, by their ids. */
export async function touchApiKeys(db: Db, usedAt: ReadonlyMap<string, Date>): Promise<void> {
  await runStatement(db, TOUCH_API_KEYS, [[...usedAt.keys()], [...usedAt.values()]])
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
 * Stores a given or a new key, with an audit event if it is known who creates it. Returns it, which is the only time
 * that it can be shown; undefined if the id is used already.
 * @throws ApiKeyExistsError when the organization has a key with this name, or the given key is in use.
 */
export async function storeApiKey(
  db: PrismaDb,
  organizationId: string,
  { id = newId(), name, scopes, expiresAt, key = createApiKey().key }: NewApiKey,
  by?: AuditedBy,
): Promise<string | undefined> {
  const prefix = parseApiKey(key)?.prefix
  if (prefix === undefined) throw new TypeError('The given key does not have the format of an API key.')
  try {
    return await inPrismaTransaction(db, async (tx) => {
      if (by) await assertQuotas(tx, by)
      const createdBy = by?.principal.userId ?? null
      const keySha256 = Uint8Array.from(hashApiKey(key))
      await tx.prisma.apiKey.create({
        data: { id, organizationId, name, prefix, keySha256, scopes: [...scopes], expiresAt, createdBy },
      })
      if (by) {
        await recordAuditEvent(tx, {
          ...by,
          action: 'api_key.created',
          target: { kind: 'api_key', id, name },
          changes: changedFields({}, { scopes, expires_at: expiresAt?.toISOString() ?? null }),
        })
      }
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

/** Stores a given or a new key under a new id, and reads what was stored. @throws ApiKeyExistsError */
export async function issueApiKey(
  db: PrismaDb,
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
export async function listApiKeys(db: PrismaDb, organizationId: string): Promise<ApiKey[]> {
  const rows = await db.prisma.apiKey.findMany({
    where: { organizationId },
    orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
    select: SELECT_COLUMNS,
  })
  return rows.map(toApiKey)
}

/**
 * Revokes the key with this id, prefix or name, with an audit event if it is known who does. Null when the organization
 * has none. A revoked key keeps its time.
 */
export async function revokeApiKey(
  db: PrismaDb,
  organizationId: string,
  which: { id: string } | { prefix: string } | { name: string },
  by?: AuditedBy,
): Promise<ApiKey | null> {
  const read = () => db.prisma.apiKey.findFirst({ where: { organizationId, ...which }, select: SELECT_COLUMNS })
  const stored = await read()
  if (!stored) return null
  const { id, name } = stored
  await inPrismaTransaction(db, async (tx) => {
    const { count } = await tx.prisma.apiKey.updateMany({
      where: { organizationId, id, revokedAt: null },
      data: { revokedAt: new Date() },
    })
    const target = { kind: 'api_key', id, name }
    if (count === 1 && by) await recordAuditEvent(tx, { ...by, action: 'api_key.revoked', target })
  })
  const row = await read()
  return row && toApiKey(row)
}

function toApiKey(row: Omit<ApiKey, 'scopes'> & { scopes: string[] }): ApiKey {
  return { ...row, scopes: row.scopes as Scope[] }
}

const CREATOR = { select: { id: true, ...USER_NAME_FIELDS } } as const

type ListedKey = Omit<ApiKey, 'scopes'> & { scopes: string[]; creator: (NamedUser & { id: string }) | null }

function toOut({ id, name, prefix, scopes, creator, ...times }: ListedKey): ApiKeyOut {
  return {
    id,
    name,
    prefix,
    scopes: scopes as Scope[],
    created_by: creator && { id: creator.id, name: userName(creator) },
    created_at: times.createdAt.toISOString(),
    expires_at: times.expiresAt?.toISOString() ?? null,
    revoked_at: times.revokedAt?.toISOString() ?? null,
    last_used_at: times.lastUsedAt?.toISOString() ?? null,
  }
}

/** The organization's keys, newest first, including revoked and expired ones. */
export async function listApiKeyPage(
  db: PrismaDb,
  organizationId: string,
  { limit, after }: { readonly limit: number; readonly after?: paging.TimePosition | undefined },
): Promise<readonly ApiKeyOut[]> {
  const keys = await db.prisma.apiKey.findMany({
    where: {
      organizationId,
      // The first condition lets PostgreSQL begin to read the index there.
      ...(after && { createdAt: { lte: after.createdAt }, NOT: { createdAt: after.createdAt, id: { gte: after.id } } }),
    },
    orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
    take: limit,
    select: { ...SELECT_COLUMNS, creator: CREATOR },
  })
  return keys.map(toOut)
}

/** The key of this id, without its secret part. */
export async function findApiKey(db: PrismaDb, organizationId: string, id: string): Promise<ApiKeyOut | undefined> {
  const select = { ...SELECT_COLUMNS, creator: CREATOR }
  const key = await db.prisma.apiKey.findFirst({ where: { organizationId, id }, select })
  return key ? toOut(key) : undefined
}
