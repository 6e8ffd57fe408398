import type { WebhookSourceIn } from '@workflow-service/contract'
import { deriveId } from '../ids.ts'
import { normalizedName } from '../webhook-sources.ts'
import { type Application, FOREIGN_ID, lower } from './application.ts'

/** A webhook source to save through the dispatcher, with its id resolved. */
export interface PlannedWebhookSource {
  id: string
  save: WebhookSourceIn
  /** False: record it without the verification request. */
  verify: boolean
}

interface StoredSource {
  id: string
  organization_id: string
  name_key: string
  is_deleted: boolean
}

/**
 * Finds each source's id: the given one, else that of the organization's source of this name, else one derived from the
 * name. `sourceIdByName` knows all of the organization's sources, by normalizedName.
 */
export async function planWebhookSources(
  app: Application,
): Promise<{ webhookSources: PlannedWebhookSource[]; sourceIdByName: Map<string, string> }> {
  const { organizationId } = app
  const entries = app.manifest.webhook_sources ?? []
  const givenIds = entries.flatMap(({ id }) => lower(id) ?? [])
  const found = await app.client.query<StoredSource>(
    `SELECT id, organization_id, name_key, deleted_at IS NOT NULL AS is_deleted FROM webhook_sources
     WHERE organization_id = $1 OR id = ANY($2)`,
    [organizationId, givenIds],
  )
  const storedById = new Map(found.rows.map((row) => [row.id, row]))
  const live = found.rows.filter((row) => row.organization_id === organizationId && !row.is_deleted)
  const idByName = new Map(live.map((row) => [row.name_key, row.id]))
  const webhookSources = entries.map(({ id: givenId, verify = true, ...save }, index) => {
    const key = normalizedName(save.name)
    const holder = idByName.get(key)
    const id = lower(givenId) ?? holder ?? unusedId(organizationId, key, storedById)
    const stored = storedById.get(id)
    const path = `webhook_sources[${index}]`
    if (stored && stored.organization_id !== organizationId) {
      app.report(`${path}.id`, FOREIGN_ID)
    } else if (stored?.is_deleted) {
      app.report(`${path}.id`, 'is that of a deleted webhook source and cannot be used again: leave it out')
    } else if (holder !== undefined && holder !== id && !givenIds.includes(holder)) {
      app.report(`${path}.name`, `is the name of webhook source ${holder}: give that id, or another name`)
    }
    return { id, save, verify }
  })
  const sourceIdByName = new Map([
    ...idByName,
    ...webhookSources.map(({ id, save }): [string, string] => [normalizedName(save.name), id]),
  ])
  return { webhookSources, sourceIdByName }
}

/** The id that follows from the name, unless a source that was deleted or renamed since has it: then the next one. */
function unusedId(organizationId: string, key: string, stored: ReadonlyMap<string, StoredSource>): string {
  for (let generation = 0; ; generation += 1) {
    const id = deriveId('webhook source', organizationId, key, generation)
    if (!stored.has(id)) return id
  }
}
