import { createHash } from 'node:crypto'
import { type AutoRunFrequency, findSimilar, type Manifest } from '@workflow-service/contract'
import { deriveId, foldCase, workflowSearchText } from '../connection/index.ts'
import { EMAIL_KEY } from '../people/index.ts'
import { normalizedName } from '../sources/index.ts'
import { scheduleAutoRun } from '../workflows/index.ts'
import {
  type ApplyContext,
  changesBetween,
  FOREIGN_ID,
  isSame,
  lowerCaseId,
  type ManifestChange,
  type ManifestOutcome,
  omit,
  outcomeOf,
  type Plan,
  type PlannedThing,
  rowsWithOutcome,
} from './apply-context.ts'
import { findByEmail } from './find-by-email.ts'
import { writeRows } from './write-rows.ts'

/** A workflow of a manifest with the ids of its triggers and files. */
export interface AppliedWorkflow {
  id: string
  name: string
  outcome: ManifestOutcome
  changes: readonly ManifestChange[]
  triggers: { id: string; name: string }[]
  files: { id: string; path: string[]; name: string }[]
}

type WorkflowEntry = NonNullable<Manifest['workflows']>[number]
type TriggerEntry = NonNullable<WorkflowEntry['triggers']>[number]

/** The fields of rows are named like the columns, because `writeRows` passes the rows to PostgreSQL as JSON. */
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
  /** Set while the runs of a deleted workflow are deleted. Applying a manifest that names it undoes the deletion. */
  deleted_at: Date | null
}

/** A trigger or a file. A changed one is deleted and inserted again. */
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

/** The difference between the stored and the wanted rows of workflows. */
interface Difference<Row> {
  readonly wanted: readonly Row[]
  /** Stored rows to delete. */
  readonly removed: readonly Row[]
  /** Wanted rows to insert. */
  readonly added: readonly Row[]
}

/** Plans the workflows, identified by their ids. The users, triggers and files of each become exactly those of the manifest. */
export async function planWorkflows(
  ctx: ApplyContext,
  sourceIdByName: ReadonlyMap<string, string>,
): Promise<Plan<AppliedWorkflow[]>> {
  const wanted = (ctx.manifest.workflows ?? []).map((entry, index) => ({
    id: lowerCaseId(entry.id) ?? deriveId('workflow', ctx.organizationId, entry.name),
    path: `workflows[${index}]`,
    entry,
  }))
  reportRepeatedIds(ctx, wanted)
  const stored = await readWorkflows(ctx, wanted)
  const users = await diffUsers(ctx, wanted)
  const triggers = await diffTriggers(ctx, wanted, sourceIdByName)
  const files = await diffFiles(ctx, wanted)

  const touched = new Set(
    [users, triggers, files].flatMap(({ removed, added }) => [...removed, ...added]).map(workflowIdOf),
  )
  const rows = wanted.map((workflow, index) => {
    const createdBefore = wanted.length - 1 - index
    return toRow(ctx, workflow, stored.get(workflow.id), createdBefore, touched.has(workflow.id))
  })
  const outcomes = rows.map((row): ManifestOutcome => {
    const outcome = outcomeOf(stored.get(row.id), row)
    return outcome === 'unchanged' && touched.has(row.id) ? 'changed' : outcome
  })
  const triggersOf = Map.groupBy(triggers.wanted, workflowIdOf)
  const filesOf = Map.groupBy(files.wanted, workflowIdOf)
  const changedParts = [
    Map.groupBy(userChanges(users), workflowIdOf),
    Map.groupBy(partChanges('triggers', triggers, triggerLabel, triggerValues), workflowIdOf),
    Map.groupBy(partChanges('files', files, fileLabel, fileValues), workflowIdOf),
  ]
  const things = wanted.map(({ id, entry }, index): PlannedThing => {
    const outcome = outcomes[index]!
    const before = stored.get(id)
    const changes =
      before === undefined || outcome === 'unchanged'
        ? []
        : [
            ...workflowChanges(before, rows[index]!, entry),
            ...changedParts.flatMap((parts) => (parts.get(id) ?? []).map(({ change }) => change)),
          ]
    return { kind: 'workflow', id, name: entry.name, outcome, changes }
  })
  return {
    result: things.map(({ id, name, outcome, changes }) => ({
      id,
      name,
      outcome,
      changes,
      triggers: (triggersOf.get(id) ?? []).map((row) => ({ id: row.id, name: row.name })),
      files: (filesOf.get(id) ?? []).map((row) => ({ id: row.id, path: row.path, name: row.name })),
    })),
    things,
    write: async () => {
      await writeRows(ctx.client, INSERT_WORKFLOWS, rowsWithOutcome('created', rows, outcomes))
      await writeRows(ctx.client, UPDATE_WORKFLOWS, rowsWithOutcome('changed', rows, outcomes))
      await writeUsers(ctx, users)
      await writeTriggers(ctx, triggers)
      await writeFiles(ctx, wanted, files)
    },
  }
}

const INSERT_WORKFLOWS = `
  INSERT INTO workflows (id, organization_id, name, description, scope, search_text, is_active, auto_run_enabled,
    auto_run_frequency, auto_run_anchor_at, auto_run_next_at, created_at, updated_at)
  SELECT id, organization_id, name, description, scope, search_text, is_active, auto_run_enabled,
    auto_run_frequency, auto_run_anchor_at, auto_run_next_at, created_at, updated_at
  FROM json_to_recordset($1) AS row (id uuid, organization_id uuid, name text, description text, scope text,
    search_text text, is_active boolean, auto_run_enabled boolean, auto_run_frequency text,
    auto_run_anchor_at timestamptz, auto_run_next_at timestamptz, created_at timestamptz, updated_at timestamptz)`

// Also for a workflow of which only users, triggers or files changed: the version is that of the whole document.
const UPDATE_WORKFLOWS = `
  UPDATE workflows SET name = row.name, description = row.description, scope = row.scope, search_text = row.search_text,
    is_active = row.is_active, auto_run_enabled = row.auto_run_enabled, auto_run_frequency = row.auto_run_frequency,
    auto_run_anchor_at = row.auto_run_anchor_at, auto_run_next_at = row.auto_run_next_at,
    created_at = row.created_at, updated_at = row.updated_at, deleted_at = NULL, version = gen_random_uuid()
  FROM json_to_recordset($1) AS row (id uuid, name text, description text, scope text, search_text text,
    is_active boolean, auto_run_enabled boolean, auto_run_frequency text, auto_run_anchor_at timestamptz,
    auto_run_next_at timestamptz, created_at timestamptz, updated_at timestamptz)
  WHERE workflows.id = row.id`

function reportRepeatedIds(ctx: ApplyContext, wanted: readonly Wanted[]): void {
  const first = new Map<string, string>()
  for (const { id, path } of wanted) {
    const earlier = first.get(id)
    if (earlier === undefined) first.set(id, path)
    else ctx.report(path, `would have the same id as ${earlier}: give each a different id`)
  }
}

async function readWorkflows(ctx: ApplyContext, wanted: readonly Wanted[]): Promise<Map<string, WorkflowRow>> {
  const found = await ctx.client.query<WorkflowRow>(
    `SELECT id, organization_id, name, description, scope, search_text, is_active, auto_run_enabled, auto_run_frequency,
       auto_run_anchor_at, auto_run_next_at, created_at, updated_at, deleted_at
     FROM workflows WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE`,
    [wanted.map(({ id }) => id)],
  )
  const stored = new Map(found.rows.map((row) => [row.id, row]))
  for (const { id, path } of wanted) {
    const row = stored.get(id)
    if (row && row.organization_id !== ctx.organizationId) ctx.report(`${path}.id`, FOREIGN_ID)
  }
  return stored
}

function toRow(
  ctx: ApplyContext,
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
  const { anchorAt, nextAt } = scheduleAutoRun({ enabled, frequency }, storedSchedule ?? null, ctx.now)
  const row: WorkflowRow = {
    id,
    organization_id: ctx.organizationId,
    name,
    description,
    scope,
    search_text: workflowSearchText(name, description),
    is_active,
    auto_run_enabled: enabled,
    auto_run_frequency: frequency,
    auto_run_anchor_at: anchorAt,
    auto_run_next_at: nextAt,
    created_at: toTime(entry.created_at) ?? stored?.created_at ?? inListOrder(ctx.now, createdBefore),
    updated_at: toTime(entry.updated_at) ?? stored?.updated_at ?? ctx.now,
    deleted_at: null,
  }
  const isChanged = isTouched || !isSame(row, stored)
  return stored && isChanged && entry.updated_at === undefined ? { ...row, updated_at: ctx.now } : row
}

function workflowChanges(stored: WorkflowRow, wanted: WorkflowRow, entry: WorkflowEntry): ManifestChange[] {
  return changesBetween(workflowValues(stored), workflowValues(wanted)).filter(
    // Without a time in the manifest, the time of the last change follows from the other changes.
    ({ field }) => field !== 'updated_at' || entry.updated_at !== undefined,
  )
}

function workflowValues(row: WorkflowRow): Record<string, unknown> {
  return {
    name: row.name,
    description: row.description,
    scope: row.scope,
    is_active: row.is_active,
    'auto_run.enabled': row.auto_run_enabled,
    'auto_run.frequency': row.auto_run_frequency,
    created_at: row.created_at,
    updated_at: row.updated_at,
    deleted: row.deleted_at !== null,
  }
}

interface PartChange {
  readonly workflow_id: string
  readonly change: ManifestChange
}

function userChanges({ removed, added }: Difference<AccessRow>): PartChange[] {
  return [
    ...removed.map(({ workflow_id, email }) => ({ workflow_id, change: { field: 'users', old: email, new: null } })),
    ...added.map(({ workflow_id, email }) => ({ workflow_id, change: { field: 'users', old: null, new: email } })),
  ]
}

/** The changes of triggers or files. An added or removed one is a single change, a changed one has a change for each value. */
function partChanges<Row extends Child>(
  field: string,
  { removed, added }: Difference<Row>,
  labelOf: (row: Row) => string,
  valuesOf: (row: Row) => Record<string, unknown>,
): PartChange[] {
  const removedById = new Map(removed.map((row) => [row.id, row]))
  const addedIds = new Set(added.map(({ id }) => id))
  const toPart = (row: Row, change: ManifestChange): PartChange => ({ workflow_id: row.workflow_id, change })
  return [
    ...removed
      .filter(({ id }) => !addedIds.has(id))
      .map((row) => toPart(row, { field: `${field}.${labelOf(row)}`, old: valuesOf(row), new: null })),
    ...added.flatMap((row) => {
      const before = removedById.get(row.id)
      const path = `${field}.${labelOf(before ?? row)}`
      if (!before) return [toPart(row, { field: path, old: null, new: valuesOf(row) })]
      return changesBetween(valuesOf(before), valuesOf(row)).map((change) =>
        toPart(row, { ...change, field: `${path}.${change.field}` }),
      )
    }),
  ]
}

function triggerLabel({ name, id }: TriggerRow): string {
  return name === '' ? id : name
}

function triggerValues(row: TriggerRow): Record<string, unknown> {
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

function fileLabel({ path, name }: FileRow): string {
  return [...path, name].join('/')
}

function fileValues({ name, path, sha256 }: FileRow): Record<string, unknown> {
  return { name, path, content: `SHA-256 ${sha256}` }
}

/** Lists are ordered by creation time: items of one manifest are created a millisecond apart, the last one now. */
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
    removed: stored.filter((row) => !isSame(row, wantedByKey.get(keyOf(row)))),
    added: wanted.filter((row) => !isSame(row, storedByKey.get(keyOf(row)))),
  }
}

/** Reports each given id that belongs to a workflow outside of the manifest. */
function reportForeignIds(
  ctx: ApplyContext,
  stored: readonly (Child & { organization_id: string })[],
  workflowIds: ReadonlySet<string>,
  pathOf: ReadonlyMap<string, string>,
): void {
  for (const row of stored) {
    const path = pathOf.get(row.id)
    if (path === undefined) continue
    if (row.organization_id !== ctx.organizationId) ctx.report(`${path}.id`, FOREIGN_ID)
    else if (!workflowIds.has(row.workflow_id)) {
      ctx.report(`${path}.id`, `belongs to workflow ${row.workflow_id}: leave it out, or name that workflow too`)
    }
  }
}

/** Unknown addresses that are compared with the known ones. */
const MAX_SUGGESTIONS = 20

interface AccessRow {
  workflow_id: string
  user_id: string
  email: string
}

async function diffUsers(ctx: ApplyContext, wanted: readonly Wanted[]): Promise<Difference<AccessRow>> {
  const { client, organizationId } = ctx
  const emails = new Set(wanted.flatMap(({ entry }) => (entry.users ?? []).map(foldCase)))
  const { rows: known } = await client.query<{ id: string; email: string }>(
    `SELECT id, email FROM users WHERE organization_id = $1 AND ${EMAIL_KEY} = ANY ($2::text[]) ORDER BY is_duplicate, id`,
    [organizationId, [...emails]],
  )
  const created = (ctx.manifest.users ?? []).map(({ email }) => ({
    email,
    id: deriveId('user', organizationId, email),
  }))
  const users = [...known, ...created]
  const find = findByEmail(users)
  const knownEmails = users.map(({ email }) => email)
  let unknownCount = 0
  const rows: AccessRow[] = []
  for (const { id, path, entry } of wanted) {
    for (const [index, email] of (entry.users ?? []).entries()) {
      const user = find(email)
      if (user) rows.push({ workflow_id: id, user_id: user.id, email: user.email })
      else {
        const similar = unknownCount++ < MAX_SUGGESTIONS ? findSimilar(email, knownEmails) : undefined
        const advice = similar === undefined ? `list ${email} under users` : `did you mean ${similar}?`
        ctx.report(`${path}.users[${index}]`, `is no user of the organization: ${advice}`)
      }
    }
  }
  const stored = await client.query<AccessRow>(
    `SELECT access.workflow_id, access.user_id, users.email
     FROM workflow_users access JOIN users ON users.id = access.user_id WHERE access.workflow_id = ANY ($1::uuid[])`,
    [wanted.map(({ id }) => id)],
  )
  return differenceOf(stored.rows, rows, (row) => `${row.workflow_id} ${row.user_id}`)
}

async function writeUsers({ client, organizationId }: ApplyContext, users: Difference<AccessRow>): Promise<void> {
  await client.query(
    `DELETE FROM workflow_users WHERE (workflow_id, user_id) IN (SELECT * FROM unnest($1::uuid[], $2::uuid[]))`,
    [users.removed.map((row) => row.workflow_id), users.removed.map((row) => row.user_id)],
  )
  const rows = users.added.map((row) => ({ organization_id: organizationId, ...row }))
  await writeRows(client, INSERT_WORKFLOW_USERS, rows)
}

const INSERT_WORKFLOW_USERS = `
  INSERT INTO workflow_users (organization_id, workflow_id, user_id)
  SELECT organization_id, workflow_id, user_id FROM json_to_recordset($1)
    AS row (organization_id uuid, workflow_id uuid, user_id uuid)`

type StoredTrigger = TriggerRow & { organization_id: string }

async function diffTriggers(
  ctx: ApplyContext,
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
      const id = lowerCaseId(trigger.id) ?? deriveId('trigger', workflowId, name, occurrence)
      pathOf.set(id, `${path}.triggers[${index}]`)
      return { id, workflowId, trigger, createdBefore: triggers.length - 1 - index }
    })
  })
  const found = await ctx.client.query<StoredTrigger>(SELECT_TRIGGERS, [[...workflowIds], [...pathOf.keys()]])
  reportForeignIds(ctx, found.rows, workflowIds, pathOf)
  const stored = found.rows
    .filter((row) => workflowIds.has(row.workflow_id))
    .map((row): TriggerRow => omit(row, 'organization_id'))
  const createdAt = new Map(stored.map((row) => [row.id, row.created_at]))
  const rows = entries.map(({ id, workflowId, trigger, createdBefore }): TriggerRow => {
    const since = toTime(trigger.created_at) ?? createdAt.get(id) ?? inListOrder(ctx.now, createdBefore)
    return toTriggerRow(ctx, id, workflowId, trigger, since, sourceIdByName)
  })
  return differenceOf(stored, rows, (row) => row.id)
}

// Columns and fields have the order of toTriggerRow, because rows are compared as JSON.
const SELECT_TRIGGERS = `
  SELECT t.id, t.workflow_id, t.name, t.is_active, t.source_slug, t.source_name, t.filters::text AS filters,
    t.input_message, t.created_at, w.organization_id,
    coalesce((SELECT json_agg(json_build_object('slug', e.slug, 'name', e.name) ORDER BY e.position)
      FROM trigger_events e WHERE e.trigger_id = t.id), '[]') AS events,
    coalesce((SELECT json_agg(json_build_object('source_id', s.source_id, 'name', s.name, 'type', s.type)
      ORDER BY s.position) FROM subagent_sources s WHERE s.trigger_id = t.id), '[]') AS subagent_sources
  FROM triggers t JOIN workflows w ON w.id = t.workflow_id
  WHERE t.workflow_id = ANY ($1::uuid[]) OR t.id = ANY ($2::uuid[])`

function toTriggerRow(
  ctx: ApplyContext,
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
    return known ?? deriveId('subagent source', ctx.organizationId, type, name)
  }
}

function withPosition<Item extends object>(triggerId: string, items: readonly Item[]) {
  return items.map((item, position) => ({ trigger_id: triggerId, position, ...item }))
}

async function writeTriggers({ client }: ApplyContext, { removed, added }: Difference<TriggerRow>): Promise<void> {
  await client.query('DELETE FROM triggers WHERE id = ANY ($1::uuid[])', [removed.map((row) => row.id)])
  const rows = added.map((row) => omit(row, 'events', 'subagent_sources'))
  await writeRows(client, INSERT_TRIGGERS, rows)
  const events = added.flatMap((row) => withPosition(row.id, row.events))
  await writeRows(client, INSERT_TRIGGER_EVENTS, events)
  const sources = added.flatMap((row) => withPosition(row.id, row.subagent_sources))
  await writeRows(client, INSERT_SUBAGENT_SOURCES, sources)
}

// The filters are read as text, which keeps them exactly as the manifest has them.
const INSERT_TRIGGERS = `
  INSERT INTO triggers (id, workflow_id, name, is_active, source_slug, source_name, filters, input_message, created_at)
  SELECT id, workflow_id, name, is_active, source_slug, source_name, filters::json, input_message, created_at
  FROM json_to_recordset($1) AS row (id uuid, workflow_id uuid, name text, is_active boolean, source_slug text,
    source_name text, filters text, input_message text, created_at timestamptz)`

const INSERT_TRIGGER_EVENTS = `
  INSERT INTO trigger_events (trigger_id, position, slug, name)
  SELECT trigger_id, position, slug, name FROM json_to_recordset($1)
    AS row (trigger_id uuid, position integer, slug text, name text)`

const INSERT_SUBAGENT_SOURCES = `
  INSERT INTO subagent_sources (trigger_id, position, source_id, name, type)
  SELECT trigger_id, position, source_id, name, type FROM json_to_recordset($1)
    AS row (trigger_id uuid, position integer, source_id uuid, name text, type text)`

async function diffFiles(ctx: ApplyContext, wanted: readonly Wanted[]): Promise<Difference<FileRow>> {
  const workflowIds = new Set(wanted.map(({ id }) => id))
  const pathOf = new Map<string, string>()
  const rows = wanted.flatMap(({ id: workflowId, path: workflowPath, entry }) =>
    (entry.files ?? []).map(({ id: givenId, name, path = [], content = '' }, index): FileRow => {
      const id = lowerCaseId(givenId) ?? deriveId('file', workflowId, ...path, name)
      pathOf.set(id, `${workflowPath}.files[${index}]`)
      return { id, workflow_id: workflowId, name, path, sha256: sha256Of(content) }
    }),
  )
  const found = await ctx.client.query<FileRow & { organization_id: string }>(SELECT_FILES, [
    [...workflowIds],
    [...pathOf.keys()],
  ])
  reportForeignIds(ctx, found.rows, workflowIds, pathOf)
  const stored = found.rows
    .filter((row) => workflowIds.has(row.workflow_id))
    .map((row): FileRow => omit(row, 'organization_id'))
  return differenceOf(stored, rows, (row) => row.id)
}

const SELECT_FILES = `
  SELECT f.id, f.workflow_id, f.name, f.path, encode(sha256(convert_to(f.content, 'UTF8')), 'hex') AS sha256,
    w.organization_id
  FROM files f JOIN workflows w ON w.id = f.workflow_id
  WHERE f.workflow_id = ANY ($1::uuid[]) OR f.id = ANY ($2::uuid[])`

function sha256Of(content: string): string {
  return createHash('sha256').update(content, 'utf8').digest('hex')
}

async function writeFiles(
  { client }: ApplyContext,
  wanted: readonly Wanted[],
  { removed, added }: Difference<FileRow>,
): Promise<void> {
  await client.query('DELETE FROM files WHERE id = ANY ($1::uuid[])', [removed.map((row) => row.id)])
  const contents = new Map(
    wanted.flatMap(({ id, entry }) =>
      (entry.files ?? []).map((file): [string, string] => [
        locationOf(id, file.path ?? [], file.name),
        file.content ?? '',
      ]),
    ),
  )
  const rows = added.map((row) => ({
    ...omit(row, 'sha256'),
    content: contents.get(locationOf(row.workflow_id, row.path, row.name))!,
  }))
  await writeRows(client, INSERT_FILES, rows)
}

const INSERT_FILES = `
  INSERT INTO files (id, workflow_id, name, path, content)
  SELECT id, workflow_id, name, path, content FROM json_to_recordset($1)
    AS row (id uuid, workflow_id uuid, name text, path text[], content text)`

function locationOf(workflowId: string, path: readonly string[], name: string): string {
  return JSON.stringify([workflowId, ...path, name])
}
