import { deriveId } from '../connection/index.ts'
import { normalizedName } from '../sources/index.ts'
import { type ApplyContext, lowerCaseId, omit } from './apply-context.ts'
import {
  type Difference,
  differenceOf,
  inListOrder,
  partChanges,
  type PartRow,
  readParts,
  toTime,
  type Wanted,
} from './workflow-difference.ts'
import { insertRows, writeRows } from './write-rows.ts'

interface TriggerRow extends PartRow {
  id: string
  name: string
  is_active: boolean
  source_slug: string
  source_name: string
  /** JSON text. */
  filters: string | null
  input_message: string
  created_at: Date
  events: { slug: string; name: string }[]
  subagent_sources: { source_id: string | null; name: string; type: string }[]
}

function triggerValues(row: TriggerRow): object {
  return {
    name: row.name,
    is_active: row.is_active,
    trigger_source: { slug: row.source_slug, name: row.source_name },
    events: row.events,
    filters: row.filters,
    input_message: row.input_message,
    subagent_sources: row.subagent_sources,
    created_at: row.created_at,
  }
}

export async function diffTriggers(
  ctx: ApplyContext,
  wanted: readonly Wanted[],
  sourceIdByName: ReadonlyMap<string, string>,
): Promise<Difference<TriggerRow>> {
  const pathOf = new Map<string, string>()
  const entries = wanted.flatMap(({ id: workflowId, path, entry }) => {
    const triggers = entry.triggers ?? []
    const seen = new Map<string, number>()
    return triggers.map((trigger, index) => {
      const { name = '' } = trigger
      const occurrence = seen.get(name) ?? 0
      seen.set(name, occurrence + 1)
      const id = lowerCaseId(trigger.id) ?? deriveId('trigger', workflowId, name, occurrence)
      pathOf.set(id, `${path}.triggers[${index}]`)
      return { id, workflowId, trigger, createdBefore: triggers.length - 1 - index }
    })
  })
  const stored = await readParts<TriggerRow>(ctx, SELECT_TRIGGERS, wanted, pathOf)
  const createdAt = new Map(stored.map((row) => [row.id, row.created_at]))
  const sourceIdFor = (name: string, type: string): string => {
    const known = type === 'api' ? sourceIdByName.get(normalizedName(name)) : undefined
    return known ?? deriveId('subagent source', ctx.organizationId, type, name)
  }
  const rows = entries.map(({ id, workflowId, trigger, createdBefore }): TriggerRow => {
    const { name = '', is_active = true, trigger_source: source, filters, input_message = '' } = trigger
    return {
      id,
      workflow_id: workflowId,
      name,
      is_active,
      source_slug: source.slug,
      source_name: source.name,
      filters: filters ? JSON.stringify(filters) : null,
      input_message,
      created_at: toTime(trigger.created_at) ?? createdAt.get(id) ?? inListOrder(ctx.now, createdBefore),
      events: (trigger.events ?? []).map((event) => ({ slug: event.slug, name: event.name })),
      subagent_sources: (trigger.subagent_sources ?? []).map((each) => ({
        source_id:
          each.type === 'platform_internal' ? null : (each.id?.toLowerCase() ?? sourceIdFor(each.name, each.type)),
        name: each.name,
        type: each.type,
      })),
    }
  })
  const idOf = (row: TriggerRow) => row.id
  return differenceOf(stored, rows, idOf, (before, after) => {
    const { name, id } = (before ?? after)!
    return partChanges(`triggers.${name || id}`, before && triggerValues(before), after && triggerValues(after))
  })
}

// Columns and fields have the order of those rows, because rows are compared as JSON.
const SELECT_TRIGGERS = `
  SELECT t.id, t.workflow_id, t.name, t.is_active, t.source_slug, t.source_name, t.filters::text AS filters,
    t.input_message, t.created_at, w.organization_id,
    coalesce((SELECT json_agg(json_build_object('slug', e.slug, 'name', e.name) ORDER BY e.position)
      FROM trigger_events e WHERE e.trigger_id = t.id), '[]') AS events,
    coalesce((SELECT json_agg(json_build_object('source_id', s.source_id, 'name', s.name, 'type', s.type)
      ORDER BY s.position) FROM subagent_sources s WHERE s.trigger_id = t.id), '[]') AS subagent_sources
  FROM triggers t JOIN workflows w ON w.id = t.workflow_id
  WHERE t.workflow_id = ANY ($1::uuid[]) OR t.id = ANY ($2::uuid[])`

function withPosition<Item extends object>(triggerId: string, items: readonly Item[]) {
  return items.map((item, position) => ({ trigger_id: triggerId, position, ...item }))
}

export async function writeTriggers(
  { client }: ApplyContext,
  { removed, added }: Difference<TriggerRow>,
): Promise<void> {
  await client.query('DELETE FROM triggers WHERE id = ANY ($1::uuid[])', [removed.map((row) => row.id)])
  const rows = added.map((row) => omit(row, 'events', 'subagent_sources'))
  await writeRows(client, INSERT_TRIGGERS, rows)
  const events = added.flatMap((row) => withPosition(row.id, row.events))
  await insertRows(client, 'trigger_events', events)
  const sources = added.flatMap((row) => withPosition(row.id, row.subagent_sources))
  await insertRows(client, 'subagent_sources', sources)
}

// The filters are read as text, which keeps them exactly as the manifest has them.
const INSERT_TRIGGERS = `
  INSERT INTO triggers (id, workflow_id, name, is_active, source_slug, source_name, filters, input_message, created_at)
  SELECT id, workflow_id, name, is_active, source_slug, source_name, filters::json, input_message, created_at
  FROM json_to_recordset($1) AS row (id uuid, workflow_id uuid, name text, is_active boolean, source_slug text,
    source_name text, filters text, input_message text, created_at timestamptz)`
