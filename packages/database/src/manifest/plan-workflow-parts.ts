import { hash } from 'node:crypto'
import { findMediaError, findSimilar, type Manifest } from '@workflow-service/contract'
import { deriveId, foldCase } from '../connection/index.ts'
import { EMAIL_KEY } from '../people/index.ts'
import { normalizedName } from '../sources/index.ts'
import {
  type ApplyContext,
  changesBetween,
  findByEmail,
  FOREIGN_ID,
  inListOrder,
  isSame,
  lowerCaseId,
  type ManifestChange,
  reportRepeatedIds,
  toTime,
} from './apply-context.ts'
import { insertRows } from './write-rows.ts'

/** A workflow of the manifest, with its resolved id. */
export interface Wanted {
  readonly id: string
  readonly path: string
  readonly entry: NonNullable<Manifest['workflows']>[number]
}

interface PartRow {
  id: string
  workflow_id: string
}

/** The users, triggers or files of workflows, which become exactly those of the manifest. */
interface PlannedParts<Row> {
  readonly wanted: readonly Row[]
  readonly changes: readonly { readonly workflow_id: string; readonly change: ManifestChange }[]
  write(): Promise<void>
}

/** Compares rows. A changed row is deleted and inserted again. */
function planParts<Row extends PartRow>(
  stored: readonly Row[],
  wanted: readonly Row[],
  changesOf: (before: Row | undefined, after: Row | undefined) => ManifestChange[],
  write: (removed: readonly Row[], added: readonly Row[]) => Promise<void>,
): PlannedParts<Row> {
  const keyOf = ({ id, workflow_id: workflowId }: Row) => `${workflowId} ${id}`
  const storedByKey = new Map(stored.map((row) => [keyOf(row), row]))
  const wantedByKey = new Map(wanted.map((row) => [keyOf(row), row]))
  const removed = stored.filter((row) => !isSame(row, wantedByKey.get(keyOf(row))))
  const added = wanted.filter((row) => !isSame(row, storedByKey.get(keyOf(row))))
  const changes = [
    ...removed.filter((row) => !wantedByKey.has(keyOf(row))).map((row) => ({ row, of: changesOf(row, undefined) })),
    ...added.map((row) => ({ row, of: changesOf(storedByKey.get(keyOf(row)), row) })),
  ].flatMap(({ row, of }) => of.map((change) => ({ workflow_id: row.workflow_id, change })))
  return { wanted, changes, write: () => write(removed, added) }
}

/** The changes of a trigger or file. An added or removed one is a single change. */
function partChanges(field: string, before: PartRow | undefined, after: PartRow | undefined): ManifestChange[] {
  const old = before && valuesOf(before)
  const next = after && valuesOf(after)
  if (!old || !next) return [{ field, old: old ?? null, new: next ?? null }]
  return changesBetween(old, next).map((change) => ({ ...change, field: `${field}.${change.field}` }))
}

function valuesOf({ id: _id, workflow_id: _workflowId, ...values }: PartRow): object {
  return values
}

/**
 * Reads the stored triggers or files of the workflows, with a statement whose parameters are the ids of the workflows
 * and those of the wanted parts. Reports each wanted id that belongs to a workflow outside of the manifest, or to two
 * parts.
 */
async function readParts<Row extends PartRow>(
  ctx: ApplyContext,
  select: string,
  wanted: readonly Wanted[],
  parts: readonly { readonly id: string; readonly path: string }[],
): Promise<Omit<Row, 'organization_id'>[]> {
  const { client, organizationId, report } = ctx
  reportRepeatedIds(ctx, parts)
  const workflowIds = new Set(wanted.map(({ id }) => id))
  const pathOf = new Map(parts.map(({ id, path }) => [id, path]))
  const values = [[...workflowIds], [...pathOf.keys()]]
  const { rows } = await client.query<Row & { organization_id: string }>(select, values)
  for (const row of rows) {
    const path = pathOf.get(row.id)
    if (path === undefined) continue
    if (row.organization_id !== organizationId) report(`${path}.id`, FOREIGN_ID)
    else if (!workflowIds.has(row.workflow_id)) {
      report(`${path}.id`, `belongs to workflow ${row.workflow_id}: leave it out, or name that workflow too`)
    }
  }
  const ofWorkflows = rows.filter((row) => workflowIds.has(row.workflow_id))
  return ofWorkflows.map(({ organization_id: _organizationId, ...row }) => row)
}

/** Unknown addresses that are compared with the known ones. */
const MAX_SUGGESTIONS = 20

interface AccessRow extends PartRow {
  email: string
}

/** @param planned The users of the manifest. */
export async function planAccess(
  { client, organizationId, report }: ApplyContext,
  wanted: readonly Wanted[],
  planned: readonly { readonly id: string; readonly email: string }[],
): Promise<PlannedParts<AccessRow>> {
  const emails = new Set(wanted.flatMap(({ entry }) => (entry.users ?? []).map(foldCase)))
  const { rows: known } = await client.query<{ id: string; email: string }>(
    `SELECT id, email FROM users WHERE organization_id = $1 AND ${EMAIL_KEY} = ANY ($2::text[]) ORDER BY is_duplicate, id`,
    [organizationId, [...emails]],
  )
  const users = [...known, ...planned]
  const find = findByEmail(users)
  const knownEmails = users.map(({ email }) => email)
  let unknownCount = 0
  const rows: AccessRow[] = []
  for (const { id, path, entry } of wanted) {
    for (const [index, email] of (entry.users ?? []).entries()) {
      const user = find(email)
      if (user) rows.push({ id: user.id, workflow_id: id, email: user.email })
      else {
        const similar = unknownCount++ < MAX_SUGGESTIONS ? findSimilar(email, knownEmails) : undefined
        const advice = similar === undefined ? `list ${email} under users` : `did you mean ${similar}?`
        report(`${path}.users[${index}]`, `is no user of the organization: ${advice}`)
      }
    }
  }
  const stored = await client.query<AccessRow>(
    `SELECT users.id, access.workflow_id, users.email
     FROM workflow_users access JOIN users ON users.id = access.user_id WHERE access.workflow_id = ANY ($1::uuid[])`,
    [wanted.map(({ id }) => id)],
  )
  return planParts(
    stored.rows,
    rows,
    (before, after) => [{ field: 'users', old: before?.email ?? null, new: after?.email ?? null }],
    async (removed, added) => {
      await client.query(
        `DELETE FROM workflow_users WHERE (workflow_id, user_id) IN (SELECT * FROM unnest($1::uuid[], $2::uuid[]))`,
        [removed.map((row) => row.workflow_id), removed.map((row) => row.id)],
      )
      const access = added.map(({ id, workflow_id }) => ({ organization_id: organizationId, workflow_id, user_id: id }))
      await insertRows(client, 'workflow_users', access)
    },
  )
}

interface TriggerRow extends PartRow {
  name: string
  is_active: boolean
  trigger_source: { slug: string; name: string }
  events: { slug: string; name: string }[]
  /** JSON text, which is compared exactly. */
  filters: string | null
  input_message: string
  subagent_sources: { source_id: string | null; name: string; type: string }[]
  created_at: Date
}

export async function planTriggers(
  ctx: ApplyContext,
  wanted: readonly Wanted[],
  sourceIdByName: ReadonlyMap<string, string>,
): Promise<PlannedParts<TriggerRow>> {
  const { client, organizationId, now } = ctx
  const entries = wanted.flatMap(({ id: workflowId, path, entry: { triggers = [] } }) => {
    const seen = new Map<string, number>()
    return triggers.map((trigger, index) => {
      const { name = '' } = trigger
      const occurrence = seen.get(name) ?? 0
      seen.set(name, occurrence + 1)
      const id = lowerCaseId(trigger.id) ?? deriveId('trigger', workflowId, name, occurrence)
      return { id, path: `${path}.triggers[${index}]`, workflowId, trigger, createdBefore: triggers.length - 1 - index }
    })
  })
  const stored = await readParts<TriggerRow>(ctx, SELECT_TRIGGERS, wanted, entries)
  const createdAt = new Map(stored.map((row) => [row.id, row.created_at]))
  const sourceIdFor = (name: string, type: string): string => {
    const known = type === 'api' ? sourceIdByName.get(normalizedName(name)) : undefined
    return known ?? deriveId('subagent source', organizationId, type, name)
  }
  const rows = entries.map(({ id, workflowId, trigger, createdBefore }): TriggerRow => {
    const { name = '', is_active = true, trigger_source: source, filters, input_message = '' } = trigger
    return {
      id,
      workflow_id: workflowId,
      name,
      is_active,
      trigger_source: { slug: source.slug, name: source.name },
      events: (trigger.events ?? []).map((event) => ({ slug: event.slug, name: event.name })),
      filters: filters ? JSON.stringify(filters) : null,
      input_message,
      subagent_sources: (trigger.subagent_sources ?? []).map((each) => ({
        source_id:
          each.type === 'platform_internal' ? null : (each.id?.toLowerCase() ?? sourceIdFor(each.name, each.type)),
        name: each.name,
        type: each.type,
      })),
      created_at: toTime(trigger.created_at) ?? createdAt.get(id) ?? inListOrder(now, createdBefore),
    }
  })
  // Not parsed from the text of a row, which would round numbers.
  const filtersOf = new Map(entries.map(({ id, trigger }) => [id, trigger.filters]))
  return planParts(
    stored,
    rows,
    (before, after) => {
      const { name, id } = (before ?? after)!
      return partChanges(`triggers.${name || id}`, before, after)
    },
    async (removed, added) => {
      await client.query('DELETE FROM triggers WHERE id = ANY ($1::uuid[])', [removed.map((row) => row.id)])
      const triggers = added.map(({ trigger_source: source, events: _events, subagent_sources: _sources, ...row }) => ({
        ...row,
        source_slug: source.slug,
        source_name: source.name,
        filters: filtersOf.get(row.id) ?? null,
      }))
      await insertRows(client, 'triggers', triggers)
      const events = added.flatMap((row) => withPosition(row.id, row.events))
      await insertRows(client, 'trigger_events', events)
      const sources = added.flatMap((row) => withPosition(row.id, row.subagent_sources))
      await insertRows(client, 'subagent_sources', sources)
    },
  )
}

function withPosition(triggerId: string, items: readonly object[]): object[] {
  return items.map((item, position) => ({ trigger_id: triggerId, position, ...item }))
}

// Columns and fields have the order of those rows, because rows are compared as JSON.
const SELECT_TRIGGERS = `
  SELECT t.id, t.workflow_id, t.name, t.is_active,
    json_build_object('slug', t.source_slug, 'name', t.source_name) AS trigger_source,
    coalesce((SELECT json_agg(json_build_object('slug', e.slug, 'name', e.name) ORDER BY e.position)
      FROM trigger_events e WHERE e.trigger_id = t.id), '[]') AS events,
    t.filters::text AS filters, t.input_message,
    coalesce((SELECT json_agg(json_build_object('source_id', s.source_id, 'name', s.name, 'type', s.type)
      ORDER BY s.position) FROM subagent_sources s WHERE s.trigger_id = t.id), '[]') AS subagent_sources,
    t.created_at, w.organization_id
  FROM triggers t JOIN workflows w ON w.id = t.workflow_id
  WHERE t.workflow_id = ANY ($1::uuid[]) OR t.id = ANY ($2::uuid[])`

interface FileRow extends PartRow {
  name: string
  path: string[]
  /** Its hash, as plans show it. */
  content: string
}

export async function planFiles(ctx: ApplyContext, wanted: readonly Wanted[]): Promise<PlannedParts<FileRow>> {
  const { client, report } = ctx
  const entries = wanted.flatMap(({ id: workflowId, path: workflowPath, entry: { files = [] } }) =>
    files.map(({ id: givenId, name, path: folders = [], content = '' }, index) => {
      const id = lowerCaseId(givenId) ?? deriveId('file', workflowId, ...folders, name)
      const row = { id, workflow_id: workflowId, name, path: folders, content: `SHA-256 ${hash('sha256', content)}` }
      return { id, path: `${workflowPath}.files[${index}]`, row, content }
    }),
  )
  const stored = await readParts<FileRow>(ctx, SELECT_FILES, wanted, entries)
  const storedById = new Map(stored.map((file) => [file.id, file]))
  for (const { id, path, row, content } of entries) {
    const file = storedById.get(id)
    const isStored = file?.name === row.name && file.content === row.content
    const mediaError = isStored ? undefined : findMediaError(row.name, content)
    if (mediaError) report(`${path}.content`, mediaError)
  }
  const contents = new Map(entries.map(({ id, content }) => [id, content]))
  return planParts(
    stored,
    entries.map(({ row }) => row),
    (before, after) => {
      const { path, name } = (before ?? after)!
      return partChanges(`files.${[...path, name].join('/')}`, before, after)
    },
    async (removed, added) => {
      await client.query('DELETE FROM files WHERE id = ANY ($1::uuid[])', [removed.map((row) => row.id)])
      const files = added.map((row) => ({ ...row, content: contents.get(row.id) }))
      await insertRows(client, 'files', files)
    },
  )
}

const SELECT_FILES = `
  SELECT f.id, f.workflow_id, f.name, f.path,
    'SHA-256 ' || encode(sha256(convert_to(f.content, 'UTF8')), 'hex') AS content, w.organization_id
  FROM files f JOIN workflows w ON w.id = f.workflow_id
  WHERE f.workflow_id = ANY ($1::uuid[]) OR f.id = ANY ($2::uuid[])`
