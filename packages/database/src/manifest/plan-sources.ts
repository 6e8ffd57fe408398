import { isDeepStrictEqual } from 'node:util'
import { type LookupIn, trimWhiteSpace, type WebhookSourceIn } from '@workflow-service/contract'
import { deriveId } from '../connection/index.ts'
import { normalizedName } from '../sources/index.ts'
import {
  absentFields,
  type ApplyContext,
  changesBetween,
  FOREIGN_ID,
  lowerCaseId,
  type ManifestChange,
  type Plan,
  type PlannedThing,
  toThing,
} from './apply-context.ts'

/** What the dispatcher saves, with its id resolved. `outcome` is what it will do if the endpoint confirms. */
interface PlannedSave<Save> extends PlannedThing {
  readonly save: Save
  /** The version that the plan is based on; 0 for a new thing. */
  readonly version: number
  /** The one that has its name until it is saved: it comes first. */
  readonly after: string | undefined
}

export interface PlannedWebhookSource extends PlannedSave<WebhookSourceIn> {
  /** Whether the dispatcher sends the verification request. */
  readonly shouldVerify: boolean
}

export type PlannedLookup = PlannedSave<LookupIn>

interface Stored {
  readonly id: string
  readonly organizationId: string
  readonly nameKey: string
  /** Encrypted. */
  readonly secret: Buffer | null
  readonly version: number
  /** Only a webhook source, whose row stays. */
  readonly isDeleted: boolean
}

interface StoredSource extends Stored, Required<Omit<WebhookSourceIn, 'signing_secret'>> {
  readonly isVerified: boolean
}

interface StoredLookup extends Stored, Pick<LookupIn, 'name' | 'kind' | 'url' | 'header_name' | 'tools'> {}

/**
 * Resolves the id of each source: the given one, else that of the organization's source with this name, else one
 * derived from the name. `sourceIdByName` has all sources of the organization, by normalized name.
 */
export async function planWebhookSources(
  ctx: ApplyContext,
): Promise<Plan<PlannedWebhookSource> & { readonly sourceIdByName: ReadonlyMap<string, string> }> {
  const { organizationId, manifest, client } = ctx
  const entries = manifest.webhook_sources ?? []
  const { rows } = await client.query<StoredSource>(
    `SELECT id, organization_id AS "organizationId", name_key AS "nameKey", signing_secret AS secret, version,
       name, description, endpoint_url, example_request_body, approval,
       deleted_at IS NOT NULL AS "isDeleted", verified_at IS NOT NULL AS "isVerified"
     FROM webhook_sources WHERE organization_id = $1 OR id = ANY($2)`,
    [organizationId, entries.flatMap(({ id }) => lowerCaseId(id) ?? [])],
  )
  const { identities, idByName } = identify(ctx, 'webhook_sources', entries, rows)
  const webhookSources = entries.map(({ id: _id, verify = true, ...save }, index) => {
    const { id, stored, after, former } = identities[index]!
    const kept = absentFields(save, 'signing_secret', 'approval')
    const changes = stored && sourceChanges(ctx, stored, save, verify)
    const thing = toThing({ kind: 'webhook_source', id, name: save.name, kept }, changes)
    return { ...thing, ...former, save, shouldVerify: verify, version: stored?.version ?? 0, after }
  })
  const planned = new Set(identities.map(({ id }) => id))
  const sourceIdByName = new Map([
    ...[...idByName].filter(([, id]) => !planned.has(id)),
    ...webhookSources.map(({ id, name }): [string, string] => [normalizedName(name), id]),
  ])
  return { things: webhookSources, sourceIdByName }
}

/**
 * Resolves the id of each entry: the given one, else that of the thing with this name, else one derived from the name
 * that nothing has, not even another entry or something deleted or renamed. Reports ids that cannot be used, and names
 * that something else keeps, or entries exchange; each is saved alone, and no two have one name.
 */
function identify<Row extends Stored>(
  { organizationId, report }: ApplyContext,
  section: 'webhook_sources' | 'lookups',
  entries: readonly { readonly id?: string; readonly name: string }[],
  rows: readonly Row[],
) {
  const kind = section === 'lookups' ? 'look-up' : 'webhook source'
  const storedById = new Map(rows.map((row) => [row.id, row]))
  const ofOrganization = rows.filter((row) => row.organizationId === organizationId)
  const live = ofOrganization.filter((row) => !row.isDeleted)
  const deleted = Map.groupBy(
    ofOrganization.filter((row) => row.isDeleted),
    (row) => row.nameKey,
  )
  const idByName = new Map(live.map((row) => [row.nameKey, row.id]))
  const givenIds = new Set(entries.map(({ id }) => lowerCaseId(id)))
  const named = entries.map(({ id: givenId, name }) => {
    const key = normalizedName(name)
    const idOfName = idByName.get(key)
    let id = lowerCaseId(givenId) ?? (givenIds.has(idOfName) ? undefined : idOfName)
    for (let generation = 0; id === undefined; generation += 1) {
      const derived = deriveId(kind, organizationId, key, generation)
      if (!storedById.has(derived) && !givenIds.has(derived)) id = derived
    }
    const former = storedById.has(id) ? undefined : deleted.get(key)?.map((row) => row.id)
    return { id, after: idOfName === id ? undefined : idOfName, ...(former && { formerIds: former }) }
  })
  const afterById = new Map(named.map(({ id, after }) => [id, after]))
  const identities = named.map(({ id, after, ...former }, index) => {
    let before = after
    // Bounded: it may come to names that others exchange.
    for (let step = 1; before !== undefined && before !== id && step < entries.length; step += 1)
      before = afterById.get(before)
    const advice =
      before === id
        ? ', and names cannot be exchanged at once: apply a third name for one first'
        : after !== undefined && !givenIds.has(after) && ': give that id, or another name'
    const stored = storedById.get(id)
    const path = `${section}[${index}]`
    if (stored && stored.organizationId !== organizationId) report(`${path}.id`, FOREIGN_ID)
    else if (stored?.isDeleted)
      report(`${path}.id`, `is that of a deleted ${kind} and cannot be used again: leave it out`)
    else if (advice) report(`${path}.name`, `is the name of ${kind} ${after}${advice}`)
    return { id, stored, after, former }
  })
  return { identities, idByName }
}

/** What a save changes, by the dispatcher's own comparison. */
function sourceChanges(
  ctx: ApplyContext,
  stored: StoredSource,
  { signing_secret: secret, ...save }: WebhookSourceIn,
  shouldVerify: boolean,
): ManifestChange[] {
  const { example_request_body: example } = save
  // The order of its fields does not count.
  const isSameExample = isDeepStrictEqual(stored.example_request_body, toPlainJson(example))
  const before = isSameExample ? { ...stored, example_request_body: example } : stored
  return [
    ...changesBetween(before, { ...save, name: trimWhiteSpace(save.name) }),
    ...secretChange(ctx, stored, secret),
    ...(stored.isVerified || !shouldVerify ? [] : [{ field: 'verified', old: false, new: true }]),
  ]
}

function secretChange(ctx: ApplyContext, stored: Stored, secret: string | null | undefined): ManifestChange[] {
  const change = (text: string | null) => [{ field: 'signing_secret', old: stored.secret && 'set', new: text }]
  if (secret === undefined || (secret === null && !stored.secret)) return []
  if (secret === null) return change(null)
  if (!stored.secret) return change('set')
  if (!ctx.secrets) return change('compared when it is saved')
  return isSameSecret(ctx, stored, secret) ? [] : change('another secret')
}

/** Resolves the id of each look-up: the given one, else that of this name, else one derived from the name. */
export async function planLookups(ctx: ApplyContext): Promise<Plan<PlannedLookup>> {
  const { organizationId, manifest, client } = ctx
  const entries = manifest.lookups ?? []
  const { rows } = await client.query<StoredLookup>(
    `SELECT id, organization_id AS "organizationId", name_key AS "nameKey", header_value AS secret, version,
       name, kind, url, header_name, tools, false AS "isDeleted"
     FROM lookups WHERE organization_id = $1 OR id = ANY($2)`,
    [organizationId, entries.flatMap(({ id }) => lowerCaseId(id) ?? [])],
  )
  const { identities } = identify(ctx, 'lookups', entries, rows)
  const lookups = entries.map(({ id: _id, ...save }, index): PlannedLookup => {
    const { id, stored, after } = identities[index]!
    // Without its name, the header goes.
    const kept = save.header_name ? absentFields(save, 'header_value') : []
    const thing = toThing({ kind: 'lookup', id, name: save.name, kept }, stored && lookupChanges(ctx, stored, save))
    return { ...thing, save, version: stored?.version ?? 0, after }
  })
  return { things: lookups }
}

function lookupChanges(ctx: ApplyContext, stored: StoredLookup, save: LookupIn): ManifestChange[] {
  const { name, kind, url, header_name = null, header_value: value, tools } = save
  // A server describes its tools itself.
  const compared = (list: typeof tools) => (kind === 'mcp' ? list.map((tool) => tool.name) : toPlainJson(list))
  const isSameTools = isDeepStrictEqual(compared(stored.tools), compared(tools))
  const isSameHeader =
    value === undefined || (value === null ? stored.secret === null : isSameSecret(ctx, stored, value))
  return [
    ...changesBetween(stored, { name: trimWhiteSpace(name), kind, url, header_name }),
    ...(isSameTools ? [] : [{ field: 'tools', old: stored.tools, new: tools }]),
    ...(isSameHeader ? [] : [{ field: 'header_value', old: null, new: 'another value' }]),
  ]
}

/** Whether a secret is the stored one. A stored one that cannot be decrypted is another. */
function isSameSecret({ secrets }: ApplyContext, { organizationId, id, secret }: Stored, given: string): boolean {
  if (!secret) return false
  try {
    return secrets?.decrypt({ organizationId, id }, secret) === given
  } catch {
    return false
  }
}

function toPlainJson(value: object): unknown {
  return JSON.parse(JSON.stringify(value))
}
