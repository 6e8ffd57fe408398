import { createHash, randomUUID } from 'node:crypto'
import type { AutoRunFrequency, Manifest } from '@workflow-service/contract'
import { scheduleAutoRun } from '../auto-run-schedule.ts'
import { deriveId } from '../ids.ts'
import { workflowSearchText } from '../search-text.ts'
import { normalizedName } from '../webhook-sources.ts'
import {
  type Application,
  FOREIGN_ID,
  isSame,
  lower,
  type ManifestOutcome,
  outcomeOf,
  omit,
  type Plan,
  rowsThatAre,
} from './application.ts'
import { type Columns, insertRows, updateRows } from './bulk-rows.ts'

/** A workflow of a manifest with the ids of what belongs to it. */
export interface AppliedWorkflow {
  id: string
  name: string
  outcome: ManifestOutcome
  triggers: { id: string; name: string }[]
  files: { id: string; path: string[]; name: string }[]
}

type WorkflowEntry = NonNullable<Manifest['workflows']>[number]
type TriggerEntry = NonNullable<WorkflowEntry['triggers']>[number]

interface WorkflowRow {
  id: string
  organization_id: string
  name: string
  description: string
  scope: string
  search_text: string
  is_active: boolean
  auto_run_enabled: boolean | null
  auto_run_frequency: AutoRunFrequency | null
  auto_run_anchor_at: Date | null
  auto_run_next_at: Date | null
  created_at: Date
  updated_at: Date
}

/** What belongs to a workflow: never changed in place, but removed and written anew. */
interface Child {
  id: string
  workflow_id: string
}

interface TriggerRow extends Child {
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

interface FileRow extends Child {
  name: string
  path: string[]
  sha256: string
}

/** An entry of the manifest, with its resolved id. */
interface Wanted {
  readonly id: string
  readonly path: string
  readonly entry: WorkflowEntry
}

/** The difference between what a workflow has and what it shall have. */
interface Difference<Row> {
  readonly wanted: readonly Row[]
  readonly gone: readonly Row[]
  readonly added: readonly Row[]
}

/** Workflows by their id; each one's users, triggers and files become exactly those of the manifest. */
export async function planWorkflows(
  app: Application,
  sourceIdByName: ReadonlyMap<string, string>,
): Promise<Plan<AppliedWorkflow[]>> {
  const wanted = (app.manifest.workflows ?? []).map((entry, index) => ({
    id: lower(entry.id) ?? deriveId('workflow', app.organizationId, entry.name),
    path: `workflows[${index}]`,
    entry,
  }))
  reportRepeatedIds(app, wanted)
  const stored = await readWorkflows(app, wanted)
  const users = await diffUsers(app, wanted)
  const triggers = await diffTriggers(app, wanted, sourceIdByName)
  const files = await diffFiles(app, wanted)

  const touched = new Set([users, triggers, files].flatMap(({ gone, added }) => [...gone, ...added]).map(workflowIdOf))
  const rows = wanted.map((workflow, index) => {
    const createdBefore = wanted.length - 1 - index
    return toRow(app, workflow, stored.get(workflow.id), createdBefore, touched.has(workflow.id))
  })
  const outcomes = rows.map((row): ManifestOutcome => {
    const outcome = outcomeOf(stored.get(row.id), row)
    return outcome === 'unchanged' && touched.has(row.id) ? 'changed' : outcome
  })
  const triggersOf = Map.groupBy(triggers.wanted, workflowIdOf)
  const filesOf = Map.groupBy(files.wanted, workflowIdOf)
  return {
    result: wanted.map(({ id, entry }, index) => ({
      id,
      name: entry.name,
      outcome: outcomes[index]!,
      triggers: (triggersOf.get(id) ?? []).map((row) => ({ id: row.id, name: row.name })),
      files: (filesOf.get(id) ?? []).map((row) => ({ id: row.id, path: row.path, name: row.name })),
    })),
    write: async () => {
      await insertRows(app.client, 'workflows', WORKFLOW_COLUMNS, rowsThatAre('created', rows, outcomes))
      const changed = rowsThatAre('changed', rows, outcomes).map((row) => ({ ...row, version: randomUUID() }))
      await updateRows(app.client, 'workflows', { ...WORKFLOW_COLUMNS, version: 'uuid' }, changed)
      await writeUsers(app, users)
      await writeTriggers(app, triggers)
      await writeFiles(app, wanted, files)
    },
  }
}

// ---------------------------------------------------------------------------------------------------- the rows themselves

const WORKFLOW_COLUMNS: Columns<WorkflowRow> = {
  id: 'uuid',
  organization_id: 'uuid',
  name: 'text',
  description: 'text',
  scope: 'text',
  search_text: 'text',
  is_active: 'boolean',
  auto_run_enabled: 'boolean',
  auto_run_frequency: 'text',
  auto_run_anchor_at: 'timestamptz',
  auto_run_next_at: 'timestamptz',
  created_at: 'timestamptz',
  updated_at: 'timestamptz',
}

function reportRepeatedIds(app: Application, wanted: readonly Wanted[]): void {
  const first = new Map<string, string>()
  for (const { id, path } of wanted) {
    const earlier = first.get(id)
    if (earlier === undefined) first.set(id, path)
    else app.report(path, `would have the same id as ${earlier}: give each an id of its own`)
  }
}

async function readWorkflows(app: Application, wanted: readonly Wanted[]): Promise<Map<string, WorkflowRow>> {
  const found = await app.client.query<WorkflowRow>(
    `SELECT ${Object.keys(WORKFLOW_COLUMNS).join(', ')} FROM workflows WHERE id = ANY($1) ORDER BY id FOR UPDATE`,
    [wanted.map(({ id }) => id)],
  )
  const stored = new Map(found.rows.map((row) => [row.id, row]))
  for (const { id, path } of wanted) {
    const row = stored.get(id)
    if (row && row.organization_id !== app.organizationId) app.report(`${path}.id`, FOREIGN_ID)
  }
  return stored
}

function toRow(
  app: Application,
  { id, entry }: Wanted,
  stored: WorkflowRow | undefined,
  createdBefore: number,
  isTouched: boolean,
): WorkflowRow {
  const { name, description = '', scope = 'company_wide', is_active = true } = entry
  const enabled = entry.auto_run?.enabled ?? null
  const frequency = entry.auto_run?.frequency ?? null
  const storedSchedule = stored && {
    enabled: stored.auto_run_enabled,
    frequency: stored.auto_run_frequency,
    anchorAt: stored.auto_run_anchor_at,
    nextAt: stored.auto_run_next_at,
  }
  const { anchorAt, nextAt } = scheduleAutoRun({ enabled, frequency }, storedSchedule ?? null, app.now)
  const row: WorkflowRow = {
    id,
    organization_id: app.organizationId,
    name,
    description,
    scope,
    search_text: workflowSearchText(name, description),
    is_active,
    auto_run_enabled: enabled,
    auto_run_frequency: frequency,
    auto_run_anchor_at: anchorAt,
    auto_run_next_at: nextAt,
    created_at: toTime(entry.created_at) ?? stored?.created_at ?? inListOrder(app.now, createdBefore),
    updated_at: toTime(entry.updated_at) ?? stored?.updated_at ?? app.now,
  }
  const isChanged = isTouched || !isSame(row, stored)
  return stored && isChanged && entry.updated_at === undefined ? { ...row, updated_at: app.now } : row
}

/** Lists are ordered by creation time: what is created at once is a millisecond apart, the last of the list now. */
function inListOrder(now: Date, createdBefore: number): Date {
  return new Date(now.getTime() - createdBefore)
}

function toTime(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text)
}

function workflowIdOf(row: { workflow_id: string }): string {
  return row.workflow_id
}

function differenceOf<Row>(
  stored: readonly Row[],
  wanted: readonly Row[],
  keyOf: (row: Row) => string,
): Difference<Row> {
  const storedByKey = new Map(stored.map((row) => [keyOf(row), row]))
  const wantedByKey = new Map(wanted.map((row) => [keyOf(row), row]))
  return {
    wanted,
    gone: stored.filter((row) => !isSame(row, wantedByKey.get(keyOf(row)))),
    added: wanted.filter((row) => !isSame(row, storedByKey.get(keyOf(row)))),
  }
}

/** Reports each given id that something outside of the manifest's workflows has. */
function reportForeignIds(
  app: Application,
  stored: readonly (Child & { organization_id: string })[],
  workflowIds: ReadonlySet<string>,
  pathOf: ReadonlyMap<string, string>,
): void {
  for (const row of stored) {
    const path = pathOf.get(row.id)
    if (path === undefined) continue
    if (row.organization_id !== app.organizationId) app.report(`${path}.id`, FOREIGN_ID)
    else if (!workflowIds.has(row.workflow_id)) {
      app.report(`${path}.id`, `belongs to workflow ${row.workflow_id}: leave it out, or name that workflow too`)
    }
  }
}

// ------------------------------------------------------------------------------------------------------------- users

interface AccessRow {
  workflow_id: string
  user_id: string
}

async function diffUsers(app: Application, wanted: readonly Wanted[]): Promise<Difference<AccessRow>> {
  const { client, organizationId } = app
  const emails = new Set(wanted.flatMap(({ entry }) => entry.users ?? []))
  const known = await client.query<{ id: string; email: string }>(
    'SELECT id, email FROM users WHERE organization_id = $1 AND email = ANY($2)',
    [organizationId, [...emails]],
  )
  const created = (app.manifest.users ?? []).map(({ email }) => ({
    email,
    id: deriveId('user', organizationId, email),
  }))
  const idByEmail = new Map([...created, ...known.rows].map(({ email, id }) => [email, id]))
  const rows: AccessRow[] = []
  for (const { id, path, entry } of wanted) {
    for (const [index, email] of (entry.users ?? []).entries()) {
      const userId = idByEmail.get(email)
      if (userId !== undefined) rows.push({ workflow_id: id, user_id: userId })
      else app.report(`${path}.users[${index}]`, `is no user of the organization: list ${email} under users`)
    }
  }
  const stored = await client.query<AccessRow>(
    'SELECT workflow_id, user_id FROM workflow_users WHERE workflow_id = ANY($1)',
    [wanted.map(({ id }) => id)],
  )
  return differenceOf(stored.rows, rows, (row) => `${row.workflow_id} ${row.user_id}`)
}

async function writeUsers({ client, organizationId }: Application, users: Difference<AccessRow>): Promise<void> {
  await client.query(
    `DELETE FROM workflow_users WHERE (workflow_id, user_id) IN (SELECT * FROM unnest($1::uuid[], $2::uuid[]))`,
    [users.gone.map((row) => row.workflow_id), users.gone.map((row) => row.user_id)],
  )
  const rows = users.added.map((row) => ({ organization_id: organizationId, ...row }))
  await insertRows(client, 'workflow_users', { organization_id: 'uuid', workflow_id: 'uuid', user_id: 'uuid' }, rows)
}

// ---------------------------------------------------------------------------------------------------------- triggers

type StoredTrigger = TriggerRow & { organization_id: string }

async function diffTriggers(
  app: Application,
  wanted: readonly Wanted[],
  sourceIdByName: ReadonlyMap<string, string>,
): Promise<Difference<TriggerRow>> {
  const workflowIds = new Set(wanted.map(({ id }) => id))
  const pathOf = new Map<string, string>()
  const entries = wanted.flatMap(({ id: workflowId, path, entry }) => {
    const triggers = entry.triggers ?? []
    const seen = new Map<string, number>()
    return triggers.map((trigger, index) => {
      const { name = '' } = trigger
      const occurrence = seen.get(name) ?? 0
      seen.set(name, occurrence + 1)
      const id = lower(trigger.id) ?? deriveId('trigger', workflowId, name, occurrence)
      pathOf.set(id, `${path}.triggers[${index}]`)
      return { id, workflowId, trigger, createdBefore: triggers.length - 1 - index }
    })
  })
  const found = await app.client.query<StoredTrigger>(SELECT_TRIGGERS, [[...workflowIds], [...pathOf.keys()]])
  reportForeignIds(app, found.rows, workflowIds, pathOf)
  const stored = found.rows
    .filter((row) => workflowIds.has(row.workflow_id))
    .map((row): TriggerRow => omit(row, 'organization_id'))
  const createdAt = new Map(stored.map((row) => [row.id, row.created_at]))
  const rows = entries.map(({ id, workflowId, trigger, createdBefore }): TriggerRow => {
    const since = toTime(trigger.created_at) ?? createdAt.get(id) ?? inListOrder(app.now, createdBefore)
    return toTriggerRow(app, id, workflowId, trigger, since, sourceIdByName)
  })
  return differenceOf(stored, rows, (row) => row.id)
}

// In the same order of names as toTriggerRow: rows are compared as JSON.
const SELECT_TRIGGERS = `
  SELECT t.id, t.workflow_id, t.name, t.is_active, t.source_slug, t.source_name, t.filters::text AS filters,
    t.input_message, t.created_at, w.organization_id,
    coalesce((SELECT json_agg(json_build_object('slug', e.slug, 'name', e.name) ORDER BY e.position)
      FROM trigger_events e WHERE e.trigger_id = t.id), '[]') AS events,
    coalesce((SELECT json_agg(json_build_object('source_id', s.source_id, 'name', s.name, 'type', s.type)
      ORDER BY s.position) FROM subagent_sources s WHERE s.trigger_id = t.id), '[]') AS subagent_sources
  FROM triggers t JOIN workflows w ON w.id = t.workflow_id
  WHERE t.workflow_id = ANY($1) OR t.id = ANY($2)`

function toTriggerRow(
  app: Application,
  id: string,
  workflowId: string,
  trigger: TriggerEntry,
  createdAt: Date,
  sourceIdByName: ReadonlyMap<string, string>,
): TriggerRow {
  return {
    id,
    workflow_id: workflowId,
    name: trigger.name ?? '',
    is_active: trigger.is_active ?? true,
    source_slug: trigger.trigger_source.slug,
    source_name: trigger.trigger_source.name,
    filters: trigger.filters ? JSON.stringify(trigger.filters) : null,
    input_message: trigger.input_message ?? '',
    created_at: createdAt,
    events: (trigger.events ?? []).map(({ slug, name }) => ({ slug, name })),
    subagent_sources: (trigger.subagent_sources ?? []).map(({ id: sourceId, name, type }) => ({
      source_id: type === 'platform_internal' ? null : (sourceId?.toLowerCase() ?? sourceIdFor(name, type)),
      name,
      type,
    })),
  }

  function sourceIdFor(name: string, type: string): string {
    const known = type === 'api' ? sourceIdByName.get(normalizedName(name)) : undefined
    return known ?? deriveId('subagent source', app.organizationId, type, name)
  }
}

const TRIGGER_COLUMNS = {
  id: 'uuid',
  workflow_id: 'uuid',
  name: 'text',
  is_active: 'boolean',
  source_slug: 'text',
  source_name: 'text',
  filters: 'json',
  input_message: 'text',
  created_at: 'timestamptz',
}

const EVENT_COLUMNS = { trigger_id: 'uuid', position: 'integer', slug: 'text', name: 'text' }

const SUBAGENT_SOURCE_COLUMNS = {
  trigger_id: 'uuid',
  position: 'integer',
  source_id: 'uuid',
  name: 'text',
  type: 'text',
}

function withPlace<Item extends object>(triggerId: string, items: readonly Item[]) {
  return items.map((item, position) => ({ trigger_id: triggerId, position, ...item }))
}

async function writeTriggers({ client }: Application, { gone, added }: Difference<TriggerRow>): Promise<void> {
  await client.query('DELETE FROM triggers WHERE id = ANY($1)', [gone.map((row) => row.id)])
  const rows = added.map((row) => omit(row, 'events', 'subagent_sources'))
  await insertRows(client, 'triggers', TRIGGER_COLUMNS, rows)
  const events = added.flatMap((row) => withPlace(row.id, row.events))
  await insertRows(client, 'trigger_events', EVENT_COLUMNS, events)
  const sources = added.flatMap((row) => withPlace(row.id, row.subagent_sources))
  await insertRows(client, 'subagent_sources', SUBAGENT_SOURCE_COLUMNS, sources)
}

// ------------------------------------------------------------------------------------------------------------- files

async function diffFiles(app: Application, wanted: readonly Wanted[]): Promise<Difference<FileRow>> {
  const workflowIds = new Set(wanted.map(({ id }) => id))
  const pathOf = new Map<string, string>()
  const rows = wanted.flatMap(({ id: workflowId, path: workflowPath, entry }) =>
    (entry.files ?? []).map(({ id: givenId, name, path = [], content = '' }, index): FileRow => {
      const id = lower(givenId) ?? deriveId('file', workflowId, ...path, name)
      pathOf.set(id, `${workflowPath}.files[${index}]`)
      return { id, workflow_id: workflowId, name, path, sha256: sha256Of(content) }
    }),
  )
  const found = await app.client.query<FileRow & { organization_id: string }>(SELECT_FILES, [
    [...workflowIds],
    [...pathOf.keys()],
  ])
  reportForeignIds(app, found.rows, workflowIds, pathOf)
  const stored = found.rows
    .filter((row) => workflowIds.has(row.workflow_id))
    .map((row): FileRow => omit(row, 'organization_id'))
  return differenceOf(stored, rows, (row) => row.id)
}

const SELECT_FILES = `
  SELECT f.id, f.workflow_id, f.name, f.path, encode(sha256(convert_to(f.content, 'UTF8')), 'hex') AS sha256,
    w.organization_id
  FROM files f JOIN workflows w ON w.id = f.workflow_id
  WHERE f.workflow_id = ANY($1) OR f.id = ANY($2)`

function sha256Of(content: string): string {
  return createHash('sha256').update(content, 'utf8').digest('hex')
}

const FILE_COLUMNS = { id: 'uuid', workflow_id: 'uuid', name: 'text', path: 'text[]', content: 'text' }

async function writeFiles(
  { client }: Application,
  wanted: readonly Wanted[],
  { gone, added }: Difference<FileRow>,
): Promise<void> {
  await client.query('DELETE FROM files WHERE id = ANY($1)', [gone.map((row) => row.id)])
  const entries = new Map(
    wanted.flatMap(({ id, entry }) =>
      (entry.files ?? []).map((file): [string, string] => [
        placeOf(id, file.path ?? [], file.name),
        file.content ?? '',
      ]),
    ),
  )
  const rows = added.map((row) => ({
    ...omit(row, 'sha256'),
    content: entries.get(placeOf(row.workflow_id, row.path, row.name))!,
  }))
  await insertRows(client, 'files', FILE_COLUMNS, rows)
}

function placeOf(workflowId: string, path: readonly string[], name: string): string {
  return JSON.stringify([workflowId, ...path, name])
}
