import type { WebhookSourceIn } from '@workflow-service/contract'
import { deriveId } from '../ids.ts'
import { normalizedName } from '../webhook-sources.ts'
import { type ApplyContext, FOREIGN_ID, lowerCaseId } from './apply-context.ts'

/** A webhook source to save through the dispatcher, with its id resolved. */
export interface PlannedWebhookSource {
  id: string
  save: WebhookSourceIn
  /** Whether the dispatcher sends the verification request. */
  shouldVerify: boolean
}

interface StoredSource {
  id: string
  organizationId: string
  normalizedName: string
  isDeleted: boolean
}

/**
 * Resolves the id of each source: the given one, else that of the organization's source with this name, else one derived
 * from the name. `sourceIdByName` has all sources of the organization, by normalized name.
 */
export async function planWebhookSources(
  ctx: ApplyContext,
): Promise<{ webhookSources: PlannedWebhookSource[]; sourceIdByName: Map<string, string> }> {
  const { organizationId } = ctx
  const entries = ctx.manifest.webhook_sources ?? []
  const givenIds = entries.flatMap(({ id }) => lowerCaseId(id) ?? [])
  const found = await ctx.client.query<StoredSource>(
    `SELECT id, organization_id AS "organizationId", name_key AS "normalizedName", deleted_at IS NOT NULL AS "isDeleted"
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
    return { id, save, shouldVerify: verify }
  })
  const sourceIdByName = new Map([
    ...idByName,
    ...webhookSources.map(({ id, save }): [string, string] => [normalizedName(save.name), id]),
  ])
  return { webhookSources, sourceIdByName }
}

/** An id derived from the name that no source has, not even a deleted or renamed one. */
function unusedId(organizationId: string, key: string, stored: ReadonlyMap<string, StoredSource>): string {
  for (let generation = 0; ; generation += 1) {
    const id = deriveId('webhook source', organizationId, key, generation)
    if (!stored.has(id)) return id
  }
}
