import type { Queryable } from '../connection/index.ts'
import { NEW_AUDIT_EVENT_ID, OPERATOR, shortenChanges } from '../organizations/index.ts'
import type { ApplyContext, PlannedThing } from './apply-context.ts'
import { insertRows } from './write-rows.ts'

/** Actions on what a manifest has that change nothing of it: the target of a webhook of notices is its organization. */
const CHANGE_NO_MANIFEST = '{case.%,notice_webhook.%}'

/** What a person changed in the application since a manifest with this thing was last applied. */
export interface PersonEdit {
  readonly kind: PlannedThing['kind']
  readonly id: string
  readonly name: string
  /** The person's newest change. */
  readonly eventId: string
  readonly action: string
  readonly by: string
  readonly at: Date
  readonly count: number
}

// The event of a part, such as a trigger, has the workflow as its target. A change of a field is settled once a later
// apply had the field: it overwrote the change, or the manifest had its value. What neither has, stays as it is. The
// cases of a workflow are in no manifest. The deletion of a webhook source, whose id is not used again, counts for the
// new one with its name if a manifest had it; earlier changes are gone with it. A save of a webhook source or look-up
// without changes only asks its endpoint again.
const FIND_EDITS = `
  SELECT DISTINCT ON (thing.id) thing.id, event.id AS "eventId", event.action, event.actor_name AS by, event.at,
    count(*) OVER (PARTITION BY thing.id)::integer AS count
  FROM json_to_recordset($2) AS thing (id uuid, ids uuid[], kept text[])
  CROSS JOIN LATERAL unnest(thing.ids) AS target (id)
  JOIN audit_events event ON event.organization_id = $1 AND event.target_id = target.id
  WHERE (target.id = thing.id OR event.action = 'webhook_source.deleted' AND EXISTS (
      SELECT FROM audit_events applied
      WHERE applied.organization_id = $1 AND applied.target_id = target.id AND applied.action = 'manifest.applied'
    ))
    AND event.actor_kind = 'person' AND event.action NOT LIKE ALL ('${CHANGE_NO_MANIFEST}')
    AND split_part(event.action, '.', 2) IN
      ('created', 'saved', 'restored', 'deleted', 'removed', 'activated', 'deactivated', 'revoked', 'opened', 'closed')
    AND NOT (event.action IN ('webhook_source.saved', 'lookup.saved') AND json_array_length(event.changes) = 0)
    AND EXISTS (
      SELECT
      FROM json_array_elements(CASE json_array_length(event.changes) WHEN 0 THEN '[{}]' ELSE event.changes END) AS change,
        coalesce(change ->> 'field', split_part(event.action, '.', 2)) AS field
      WHERE field <> ALL (thing.kept) AND NOT EXISTS (
        SELECT FROM audit_events applied
        WHERE applied.organization_id = $1 AND applied.target_id = ANY (thing.ids)
          AND applied.action = 'manifest.applied' AND applied.id > event.id AND field <> ALL (applied.kept_fields)
      )
    )
  ORDER BY thing.id, event.id DESC`

/** Finds what people changed since the last apply, by the id of the thing. */
export async function findPersonEdits(
  { client, organizationId }: ApplyContext,
  things: readonly PlannedThing[],
): Promise<Map<string, PersonEdit>> {
  const thingById = new Map(things.map((thing) => [thing.id, thing]))
  const { rows } = await client.query<Omit<PersonEdit, 'kind' | 'name'>>(FIND_EDITS, [
    organizationId,
    JSON.stringify(things.map(({ id, formerIds = [], kept = [] }) => ({ id, ids: [id, ...formerIds], kept }))),
  ])
  return new Map(
    rows.map((row) => {
      const { kind, name } = thingById.get(row.id)!
      return [row.id, { kind, name, ...row }]
    }),
  )
}

/** Records that an operator applied a manifest with these things (contract README, "Application"). */
export async function recordApplied(client: Queryable, organizationId: string, things: readonly PlannedThing[]) {
  const rows = things.map(({ kind, id, name, changes, kept = [] }) => ({
    organization_id: organizationId,
    actor_kind: OPERATOR.kind,
    actor_name: OPERATOR.name,
    action: 'manifest.applied',
    target_kind: kind,
    target_id: id,
    target_name: name,
    changes: shortenChanges(changes),
    kept_fields: kept,
  }))
  await insertRows(client, 'audit_events', rows, { id: NEW_AUDIT_EVENT_ID })
}
