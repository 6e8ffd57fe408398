import { type Manifest, type Scope, SCOPES } from '@workflow-service/contract'
import { newId } from '../connection/index.ts'
import { createApiKey, hashApiKey, prefixOfApiKey } from '../organizations/index.ts'
import {
  absentFields,
  type ApplyContext,
  changesBetween,
  type ManifestChange,
  type ManifestOutcome,
  type Plan,
  type PlannedThing,
  toThing,
} from './apply-context.ts'

/** An API key of a manifest. `key` is set only when it was just created or is given in the manifest. */
export interface AppliedApiKey {
  id: string
  name: string
  prefix: string
  key?: string
  scopes: Scope[]
  revoked: boolean
  outcome: ManifestOutcome
  changes: readonly ManifestChange[]
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

interface WantedKey {
  readonly stored: StoredKey | undefined
  readonly sha256: Buffer
  readonly applied: AppliedApiKey
  readonly thing: PlannedThing
}

/**
 * Plans the API keys, identified by their names: a given key replaces the stored one, a new name without a key gets a
 * new key.
 */
export async function planApiKeys(ctx: ApplyContext): Promise<Plan<AppliedApiKey[]>> {
  const { organizationId } = ctx
  const entries = ctx.manifest.api_keys ?? []
  const prefixes = entries.map(({ key }) => key && prefixOfApiKey(key))
  const found = await ctx.client.query<StoredKey>(
    `SELECT id, organization_id AS "organizationId", name, prefix, key_sha256 AS "keySha256", scopes, revoked_at AS "revokedAt"
     FROM api_keys WHERE (organization_id = $1 AND name = ANY($2)) OR prefix = ANY($3)`,
    [organizationId, entries.map(({ name }) => name), prefixes],
  )
  const wanted = entries.map((entry, index) => {
    const isEntry = (row: StoredKey) => row.organizationId === organizationId && row.name === entry.name
    if (found.rows.some((row) => row.prefix === prefixes[index] && !isEntry(row))) {
      ctx.report(`api_keys[${index}].key`, 'is in use already, under another name or in another organization')
    }
    return toWantedKey(entry, found.rows.find(isEntry))
  })
  return {
    result: wanted.map(({ applied }) => applied),
    things: wanted.map(({ thing }) => thing),
    write: async () => {
      for (const key of wanted) await writeKey(ctx, key)
    },
  }
}

function toWantedKey(entry: NonNullable<Manifest['api_keys']>[number], stored: StoredKey | undefined): WantedKey {
  const key = entry.key ?? (stored ? undefined : createApiKey().key)
  const sha256 = key === undefined ? stored!.keySha256 : hashApiKey(key)
  const scopes = inOrder(entry.scopes ?? stored?.scopes ?? SCOPES)
  const wasRevoked = (stored?.revokedAt ?? null) !== null
  const revoked = entry.revoked ?? wasRevoked
  const isSameKey = stored?.keySha256.equals(sha256) === true
  const changes = stored && [
    ...(isSameKey ? [] : [{ field: 'key', old: 'the earlier key', new: 'another key' }]),
    ...changesBetween({ scopes: inOrder(stored.scopes), revoked: wasRevoked }, { scopes, revoked }),
  ]
  const kept = absentFields(entry, 'revoked')
  const thing = toThing({ kind: 'api_key', id: stored?.id ?? newId(), name: entry.name, kept }, changes)
  return {
    stored,
    sha256,
    thing,
    applied: {
      id: thing.id,
      name: thing.name,
      prefix: key === undefined ? stored!.prefix : prefixOfApiKey(key)!,
      ...(key === undefined ? {} : { key }),
      scopes,
      revoked,
      outcome: thing.outcome,
      changes: thing.changes,
    },
  }
}

async function writeKey({ client, organizationId, now }: ApplyContext, wanted: WantedKey): Promise<void> {
  const { stored, sha256, applied } = wanted
  const { id, name, prefix, scopes, revoked, outcome } = applied
  if (outcome === 'unchanged') return
  const revokedAt = revoked ? (stored?.revokedAt ?? now) : null
  if (!stored) {
    await client.query(
      `INSERT INTO api_keys (id, organization_id, name, prefix, key_sha256, scopes, created_at, revoked_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
      [id, organizationId, name, prefix, sha256, scopes, now, revokedAt],
    )
    return
  }
  // A new key under this name has not been used yet, and does not expire.
  await client.query(
    `UPDATE api_keys SET prefix = $2, key_sha256 = $3, scopes = $4, revoked_at = $5,
       last_used_at = CASE WHEN key_sha256 = $3 THEN last_used_at END,
       expires_at = CASE WHEN key_sha256 = $3 THEN expires_at END
     WHERE id = $1`,
    [stored.id, prefix, sha256, scopes, revokedAt],
  )
}

function inOrder(scopes: readonly Scope[]): Scope[] {
  return SCOPES.filter((scope) => scopes.includes(scope))
}
