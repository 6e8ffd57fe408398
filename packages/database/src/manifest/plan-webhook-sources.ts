import { isDeepStrictEqual } from 'node:util'
import { type ApprovalMode, trimWhiteSpace, type WebhookSourceIn } from '@workflow-service/contract'
import { deriveId } from '../connection/index.ts'
import { normalizedName } from '../sources/index.ts'
import {
  absentFields,
  type ApplyContext,
  changesBetween,
  FOREIGN_ID,
  isSameSecret,
  lowerCaseId,
  type ManifestChange,
  type Plan,
  type PlannedSave,
  toPlainJson,
  toThing,
} from './apply-context.ts'

/** `outcome` is what the dispatcher will do if the endpoint confirms. */
export interface PlannedWebhookSource extends PlannedSave<WebhookSourceIn> {
  /** Whether the dispatcher sends the verification request. */
  readonly shouldVerify: boolean
}

interface StoredSource {
  id: string
  organizationId: string
  normalizedName: string
  isDeleted: boolean
  name: string
  description: string
  endpointUrl: string
  exampleRequestBody: Record<string, unknown>
  signingSecret: Buffer | null
  isVerified: boolean
  version: number
  approval: ApprovalMode
}

/**
 * Resolves the id of each source: the given one, else that of the organization's source with this name, else one
 * derived from the name. `sourceIdByName` has all sources of the organization, by normalized name.
 */
export async function planWebhookSources(
  ctx: ApplyContext,
): Promise<Plan<PlannedWebhookSource[]> & { readonly sourceIdByName: ReadonlyMap<string, string> }> {
  const { organizationId } = ctx
  const entries = ctx.manifest.webhook_sources ?? []
  const givenIds = entries.flatMap(({ id }) => lowerCaseId(id) ?? [])
  const found = await ctx.client.query<StoredSource>(
    `SELECT id, organization_id AS "organizationId", name_key AS "normalizedName", deleted_at IS NOT NULL AS "isDeleted",
       name, description, endpoint_url AS "endpointUrl", example_request_body AS "exampleRequestBody",
       signing_secret AS "signingSecret", verified_at IS NOT NULL AS "isVerified", version, approval
     FROM webhook_sources WHERE organization_id = $1 OR id = ANY($2)`,
    [organizationId, givenIds],
  )
  const storedById = new Map(found.rows.map((row) => [row.id, row]))
  const live = found.rows.filter((row) => row.organizationId === organizationId && !row.isDeleted)
  const idByName = new Map(live.map((row) => [row.normalizedName, row.id]))
  const webhookSources = entries.map(({ id: givenId, verify = true, ...save }, index) => {
    const key = normalizedName(save.name)
    const idOfName = idByName.get(key)
    const id = lowerCaseId(givenId) ?? idOfName ?? unusedId(organizationId, key, storedById)
    const stored = storedById.get(id)
    const path = `webhook_sources[${index}]`
    if (stored && stored.organizationId !== organizationId) {
      ctx.report(`${path}.id`, FOREIGN_ID)
    } else if (stored?.isDeleted) {
      ctx.report(`${path}.id`, 'is that of a deleted webhook source and cannot be used again: leave it out')
    } else if (idOfName !== undefined && idOfName !== id && !givenIds.includes(idOfName)) {
      ctx.report(`${path}.name`, `is the name of webhook source ${idOfName}: give that id, or another name`)
    }
    const kept = absentFields(save, 'signing_secret', 'approval')
    const changes = stored && changesOf(ctx, stored, save, verify)
    const thing = toThing({ kind: 'webhook_source', id, name: save.name, kept }, changes)
    return { ...thing, save, shouldVerify: verify, version: stored?.version ?? 0 }
  })
  const sourceIdByName = new Map([
    ...idByName,
    ...webhookSources.map(({ id, name }): [string, string] => [normalizedName(name), id]),
  ])
  return { result: webhookSources, things: webhookSources, sourceIdByName }
}

/** What a save changes, by the dispatcher's own comparison. */
function changesOf(
  ctx: ApplyContext,
  stored: StoredSource,
  { signing_secret: secret, ...save }: WebhookSourceIn,
  shouldVerify: boolean,
): ManifestChange[] {
  const wanted = { ...save, name: trimWhiteSpace(save.name) }
  // The order of its fields does not count.
  const isSameExample = isDeepStrictEqual(stored.exampleRequestBody, toPlainJson(save.example_request_body))
  const before = {
    name: stored.name,
    description: stored.description,
    endpoint_url: stored.endpointUrl,
    example_request_body: isSameExample ? save.example_request_body : stored.exampleRequestBody,
    approval: stored.approval,
  }
  return [
    ...changesBetween(before, wanted),
    ...secretChange(ctx, stored, secret),
    ...(stored.isVerified || !shouldVerify ? [] : [{ field: 'verified', old: false, new: true }]),
  ]
}

function secretChange(ctx: ApplyContext, stored: StoredSource, secret: string | null | undefined): ManifestChange[] {
  const change = (text: string) => [{ field: 'signing_secret', old: stored.signingSecret && 'set', new: text }]
  if (secret === undefined || (secret === null && !stored.signingSecret)) return []
  if (secret === null) return [{ field: 'signing_secret', old: 'set', new: null }]
  if (!stored.signingSecret) return change('set')
  if (!ctx.secrets) return change('compared when it is saved')
  return isSameSecret(ctx, stored, stored.signingSecret, secret) ? [] : change('another secret')
}

/** An id derived from the name that no source has, not even a deleted or renamed one. */
function unusedId(organizationId: string, key: string, stored: ReadonlyMap<string, StoredSource>): string {
  for (let generation = 0; ; generation += 1) {
    const id = deriveId('webhook source', organizationId, key, generation)
    if (!stored.has(id)) return id
  }
}
