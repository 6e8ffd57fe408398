import { type Manifest, type Scope, SCOPES } from '@workflow-service/contract'
import { newId } from '../connection/index.ts'
import { createApiKey, hashApiKey, prefixOfApiKey } from '../organizations/index.ts'
import {
  absentFields,
  type ApplyContext,
  changesBetween,
  type Plan,
  type PlannedRow,
  type PlannedThing,
  toThing,
} from './apply-context.ts'
import { writePlanned } from './write-rows.ts'

/** An API key of a manifest. `key` is set only when it was just created or is given in the manifest. */
export interface AppliedApiKey extends PlannedThing {
  readonly prefix: string
  readonly key?: string
  readonly scopes: readonly Scope[]
  readonly revoked: boolean
}

interface StoredKey {
  id: string
  organizationId: string
  name: string
  prefix: string
  keySha256: Buffer
  scopes: Scope[]
  revokedAt: Date | null
}

/**
 * Plans the API keys, identified by their names: a given key replaces the stored one, a new name without a key gets a
 * new key.
 */
export async function planApiKeys(ctx: ApplyContext): Promise<Plan<AppliedApiKey>> {
  const { client, organizationId } = ctx
  const entries = ctx.manifest.api_keys ?? []
  const prefixes = entries.map(({ key }) => key && prefixOfApiKey(key))
  // Locked, because the row of a changed key is written as it was read: one that is revoked meanwhile would be valid.
  const found = await client.query<StoredKey>(
    `SELECT id, organization_id AS "organizationId", name, prefix, key_sha256 AS "keySha256", scopes, revoked_at AS "revokedAt"
     FROM api_keys WHERE (organization_id = $1 AND name = ANY($2)) OR prefix = ANY($3) ORDER BY id FOR NO KEY UPDATE`,
    [organizationId, entries.map(({ name }) => name), prefixes],
  )
  const planned = entries.map((entry, index) => {
    const isEntry = (row: StoredKey) => row.organizationId === organizationId && row.name === entry.name
    if (found.rows.some((row) => row.prefix === prefixes[index] && !isEntry(row))) {
      ctx.report(`api_keys[${index}].key`, 'is in use already, under another name or in another organization')
    }
    return planKey(ctx, entry, found.rows.find(isEntry))
  })
  // A new key under this name has not been used yet, and does not expire.
  const ofSameKey = ['last_used_at', 'expires_at'].map(
    (column) => `${column} = CASE WHEN api_keys.key_sha256 = row.key_sha256 THEN api_keys.${column} END`,
  )
  return {
    things: planned.map(({ thing }) => thing),
    write: () => writePlanned(client, 'api_keys', planned, ofSameKey),
  }
}

function planKey(
  { organizationId, now }: ApplyContext,
  entry: NonNullable<Manifest['api_keys']>[number],
  stored: StoredKey | undefined,
): PlannedRow<AppliedApiKey> {
  const key = entry.key ?? (stored ? undefined : createApiKey().key)
  const sha256 = key === undefined ? stored!.keySha256 : hashApiKey(key)
  const prefix = key === undefined ? stored!.prefix : prefixOfApiKey(key)!
  const scopes = inOrder(entry.scopes ?? stored?.scopes ?? SCOPES)
  const revokedAt = stored?.revokedAt ?? null
  const revoked = entry.revoked ?? revokedAt !== null
  const isSameKey = stored?.keySha256.equals(sha256) === true
  const changes = stored && [
    ...(isSameKey ? [] : [{ field: 'key', old: 'the earlier key', new: 'another key' }]),
    ...changesBetween({ scopes: inOrder(stored.scopes), revoked: revokedAt !== null }, { scopes, revoked }),
  ]
  const kept = absentFields(entry, 'revoked')
  const thing = toThing({ kind: 'api_key', id: stored?.id ?? newId(), name: entry.name, kept }, changes)
  const { id, name } = thing
  const row = { id, organization_id: organizationId, name, prefix, key_sha256: `\\x${sha256.toString('hex')}`, scopes }
  return {
    thing: { ...thing, prefix, ...(key !== undefined && { key }), scopes, revoked },
    row: { ...row, revoked_at: revoked ? (revokedAt ?? now) : null },
  }
}

function inOrder(scopes: readonly Scope[]): Scope[] {
  return SCOPES.filter((scope) => scopes.includes(scope))
}
