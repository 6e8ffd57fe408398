import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Manifest, MANIFEST_EXPORT_MAX_BYTES } from '@workflow-service/contract'
import type { PoolClient } from 'pg'
import { type Db, inTransaction, NIL_UUID } from '../connection/index.ts'
import { ManifestError } from './manifest-errors.ts'
import { createManifestWriter, type ManifestFormat, withoutNulls, type WriteText } from './manifest-writer.ts'
import { inChunks } from './write-rows.ts'

type UserEntry = NonNullable<Manifest['users']>[number]
type SourceEntry = NonNullable<Manifest['webhook_sources']>[number]
type LookupEntry = NonNullable<Manifest['lookups']>[number]
type WorkflowEntry = NonNullable<Manifest['workflows']>[number]
type TriggerEntry = NonNullable<WorkflowEntry['triggers']>[number]
type FileEntry = NonNullable<WorkflowEntry['files']>[number]

export interface ExportOptions {
  /** Default: `yaml`. */
  readonly format?: ManifestFormat
  /** Exports only this workflow, with the users that it lists. */
  readonly workflowId?: string | undefined
  /** Without ids and times, for another organization. Default: applying it changes nothing. */
  readonly isPortable?: boolean
}

/** The manifest would be larger than MANIFEST_EXPORT_MAX_BYTES. */
export class ManifestTooLargeError extends Error {
  override name = 'ManifestTooLargeError'
}

/**
 * Returns the manifest of an organization, or of one of its workflows: applying it changes nothing (contract README,
 * "Manifest"). Undefined if there is no such organization or workflow.
 * @throws ManifestTooLargeError beyond MANIFEST_EXPORT_MAX_BYTES.
 */
export async function exportManifest(
  db: Db,
  organizationId: string,
  options: ExportOptions = {},
): Promise<string | undefined> {
  const parts: string[] = []
  let bytes = 0
  const isFound = await writeManifest(db, organizationId, options, (text) => {
    bytes += Buffer.byteLength(text)
    if (bytes > MANIFEST_EXPORT_MAX_BYTES) throw new ManifestTooLargeError('The manifest is too large.')
    parts.push(text)
  })
  return isFound ? parts.join('') : undefined
}

/**
 * Writes the manifest of an organization in parts, as of one moment, reading a few workflows at a time. Resolves to
 * false, having written nothing, if there is no such organization or workflow.
 */
export async function writeManifest(
  db: Db,
  organizationId: string,
  { format = 'yaml', workflowId, isPortable = false }: ExportOptions,
  write: WriteText,
): Promise<boolean> {
  return await inTransaction(db, async (client) => {
    await client.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY')
    const { rows } = await client.query<Manifest['organization']>(SELECT_ORGANIZATION, [organizationId, workflowId])
    const [organization] = rows
    if (!organization) return false
    if (isPortable) await assertNamesAreUnique(client, organizationId)
    const shown = isPortable ? withoutIdsAndTimes : <Entry extends object>(entry: Entry) => entry
    const writer = createManifestWriter(format, write, isPortable)
    const giveWay = createPause()
    writer.begin(shown(organization))
    for await (const user of readUsers(client, organizationId, workflowId)) writer.item('users', user)
    if (workflowId === undefined) {
      for await (const { hasSecret, ...source } of readSources(client, organizationId)) {
        const kept = isPortable
          ? 'A signing secret is set: give the copy its own.'
          : 'A signing secret is set. An apply keeps it.'
        writer.item('webhook_sources', shown(source), hasSecret ? kept : undefined)
      }
      // At most LOOKUPS_MAX, unless manifests made more.
      const { rows: lookups } = await client.query<LookupEntry & { hasSecret: boolean }>(SELECT_LOOKUPS, [
        organizationId,
      ])
      for (const { hasSecret, ...lookup } of lookups) {
        writer.item('lookups', lookup, hasSecret ? 'The header has a value. An apply keeps it.' : undefined)
        await giveWay()
      }
    }
    for await (const { triggers = [], ...workflow } of readWorkflows(client, organizationId, workflowId)) {
      writer.item('workflows', shown(triggers.length === 0 ? { ...workflow, triggers } : workflow))
      for (const trigger of triggers) {
        writer.part('triggers', shown(trigger))
        await giveWay()
      }
      for await (const file of readFiles(client, workflow.id!)) {
        writer.part('files', shown(file))
        await giveWay()
      }
      await giveWay()
    }
    writer.end()
    return true
  })
}

/** Without ids, names say what is what: two workflows of one name would become one. @throws ManifestError */
async function assertNamesAreUnique(client: PoolClient, organizationId: string): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT name FROM workflows WHERE organization_id = $1 AND deleted_at IS NULL GROUP BY name HAVING count(*) > 1`,
    [organizationId],
  )
  if (rows.length === 0) return
  throw new ManifestError(
    rows.map(({ name }) => ({
      path: 'workflows',
      message: `several are named ${JSON.stringify(name)}: rename them, or export without --portable`,
      manifestIndex: 0,
    })),
  )
}

function withoutIdsAndTimes(entry: object): object {
  const { id: _id, created_at: _created, updated_at: _updated, ...rest } = entry as Record<string, unknown>
  const { subagent_sources: sources } = rest as Partial<TriggerEntry>
  return sources ? { ...rest, subagent_sources: sources.map(withoutIdsAndTimes) } : rest
}

const MAX_BUSY_MS = 5

/** Returns a function that lets others use the event loop if the caller has used it for 5 ms since it last did. */
function createPause(): () => Promise<void> {
  let startedMs = performance.now()
  return async () => {
    if (performance.now() - startedMs < MAX_BUSY_MS) return
    await nextTurn()
    startedMs = performance.now()
  }
}

const SELECT_ORGANIZATION = `
  SELECT id, name, CASE WHEN is_suspended THEN true END AS suspended,
    CASE WHEN $2::uuid IS NULL THEN (
      SELECT nullif(text, '') FROM instructions WHERE organization_id = $1 ORDER BY number DESC LIMIT 1
    ) END AS instructions,
    CASE WHEN $2::uuid IS NULL THEN month_budget / 1e6 END::float8 AS month_budget,
    CASE WHEN $2::uuid IS NULL THEN nullif(offered_models, '{}') END AS offered_models
  FROM organizations
  WHERE id = $1 AND deleted_at IS NULL AND ($2::uuid IS NULL OR EXISTS (
    SELECT FROM workflows WHERE organization_id = $1 AND workflows.id = $2 AND deleted_at IS NULL
  ))`

const PAGE_SIZE = 1_000

const SELECT_USERS = `
  SELECT email, nullif(first_name, '') AS first_name, nullif(last_name, '') AS last_name FROM users
  WHERE organization_id = $1 AND email > $2
    AND ($3::uuid IS NULL OR EXISTS (SELECT FROM workflow_users WHERE workflow_id = $3 AND user_id = users.id))
  ORDER BY email LIMIT ${PAGE_SIZE}`

async function* readUsers(
  client: PoolClient,
  organizationId: string,
  workflowId: string | undefined,
): AsyncGenerator<UserEntry> {
  let after = ''
  for (;;) {
    const { rows } = await client.query<UserEntry>(SELECT_USERS, [organizationId, after, workflowId])
    yield* rows
    if (rows.length < PAGE_SIZE) return
    after = rows.at(-1)!.email
  }
}

/** An example may have 64 KiB. */
const SOURCES_PAGE_SIZE = 50

const SELECT_SOURCES = `
  SELECT name_key, signing_secret IS NOT NULL AS "hasSecret", id, name, description, endpoint_url, example_request_body,
    nullif(approval, 'none') AS approval, CASE WHEN verified_at IS NULL THEN false END AS verify
  FROM webhook_sources
  WHERE organization_id = $1 AND deleted_at IS NULL AND name_key > $2
  ORDER BY name_key LIMIT ${SOURCES_PAGE_SIZE}`

async function* readSources(
  client: PoolClient,
  organizationId: string,
): AsyncGenerator<SourceEntry & { hasSecret: boolean }> {
  let after = ''
  for (;;) {
    const { rows } = await client.query<SourceEntry & { hasSecret: boolean; name_key: string }>(SELECT_SOURCES, [
      organizationId,
      after,
    ])
    for (const { name_key: _nameKey, ...source } of rows) yield source
    if (rows.length < SOURCES_PAGE_SIZE) return
    after = rows.at(-1)!.name_key
  }
}

const SELECT_LOOKUPS = `
  SELECT id, name, kind, url, header_name, header_value IS NOT NULL AS "hasSecret",
    CASE kind WHEN 'mcp' THEN (
      SELECT json_agg(json_build_object('name', tool ->> 'name') ORDER BY position)
      FROM json_array_elements(tools) WITH ORDINALITY AS each (tool, position)
    ) ELSE tools END AS tools
  FROM lookups WHERE organization_id = $1 ORDER BY name_key`

/** A workflow may have 50 KB, and each of its triggers as much. */
const WORKFLOWS_PAGE_SIZE = 20

/** A time as `toISOString` writes it. */
const isoTime = (column: string) =>
  `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS ${column}`

const SELECT_WORKFLOWS = `
  SELECT id, name, nullif(description, '') AS description, scope, is_active,
    CASE WHEN auto_run_enabled IS NOT NULL THEN json_build_object(
      'enabled', auto_run_enabled, 'frequency', auto_run_frequency, 'timing', auto_run_timing
    ) END AS auto_run,
    model, run_budget / 1e6::float8 AS run_budget, day_budget / 1e6::float8 AS day_budget,
    nullif(when_spent, 'fail') AS when_spent, ${isoTime('created_at')}, ${isoTime('updated_at')},
    (SELECT coalesce(array_agg(users.email ORDER BY users.email), '{}') FROM workflow_users access
      JOIN users ON users.id = access.user_id WHERE access.workflow_id = workflows.id) AS users
  FROM workflows
  WHERE organization_id = $1 AND deleted_at IS NULL AND (workflows.created_at, id) > ($2, $3)
    AND ($4::uuid IS NULL OR id = $4)
  ORDER BY workflows.created_at, id LIMIT ${WORKFLOWS_PAGE_SIZE}`

async function* readWorkflows(
  client: PoolClient,
  organizationId: string,
  workflowId: string | undefined,
): AsyncGenerator<WorkflowEntry> {
  let after = ['-infinity', NIL_UUID]
  for (;;) {
    const { rows } = await client.query<WorkflowEntry & { id: string; created_at: string }>(SELECT_WORKFLOWS, [
      organizationId,
      ...after,
      workflowId,
    ])
    const triggers = await readTriggers(
      client,
      rows.map(({ id }) => id),
    )
    for (const row of rows) {
      const schedule = row.auto_run && (withoutNulls(row.auto_run) as typeof row.auto_run)
      yield { ...row, auto_run: schedule, triggers: triggers.get(row.id) ?? [] }
    }
    if (rows.length < WORKFLOWS_PAGE_SIZE) return
    const last = rows.at(-1)!
    after = [last.created_at, last.id]
  }
}

const SELECT_TRIGGERS = `
  SELECT t.workflow_id, t.id, nullif(t.name, '') AS name, t.is_active,
    json_build_object('slug', t.source_slug, 'name', t.source_name) AS trigger_source,
    (SELECT json_agg(json_build_object('slug', e.slug, 'name', e.name) ORDER BY e.position)
      FROM trigger_events e WHERE e.trigger_id = t.id) AS events,
    t.filters::text AS filters, nullif(t.input_message, '') AS input_message,
    (SELECT json_agg(json_strip_nulls(json_build_object('id', s.source_id, 'name', s.name, 'type', s.type))
      ORDER BY s.position) FROM subagent_sources s WHERE s.trigger_id = t.id) AS subagent_sources,
    ${isoTime('created_at')}
  FROM triggers t WHERE t.workflow_id = ANY ($1::uuid[]) ORDER BY t.created_at, t.id`

type StoredTrigger = Omit<TriggerEntry, 'filters'> & { workflow_id: string; filters: string | null }

async function readTriggers(
  client: PoolClient,
  workflowIds: readonly string[],
): Promise<ReadonlyMap<string, TriggerEntry[]>> {
  const { rows } = await client.query<StoredTrigger>(SELECT_TRIGGERS, [workflowIds])
  const byWorkflow = Map.groupBy(rows, (row) => row.workflow_id)
  return new Map([...byWorkflow].map(([workflowId, triggers]) => [workflowId, triggers.map(toTriggerEntry)]))
}

function toTriggerEntry({ workflow_id: _id, ...trigger }: StoredTrigger): TriggerEntry {
  const { filters } = trigger
  return { ...trigger, filters: filters === null ? null : (JSON.parse(filters, keepDigits) as Record<string, unknown>) }
}

/** Keeps all digits of integers that a JavaScript number would round: filters are exported as they are stored. */
function keepDigits(_key: string, value: unknown, context?: { source?: string }): unknown {
  const { source = '' } = context ?? {}
  return typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(source) ? BigInt(source) : value
}

/** The contents that are read at once; a file may have 1 MiB. */
const FILES_CHUNK_BYTES = 4 * 1024 * 1024

async function* readFiles(client: PoolClient, workflowId: string): AsyncGenerator<FileEntry> {
  const { rows } = await client.query<{ id: string; bytes: number }>(
    'SELECT id, octet_length(content) AS bytes FROM files WHERE workflow_id = $1 ORDER BY path, name, id',
    [workflowId],
  )
  for (const chunk of inChunks(rows, FILES_CHUNK_BYTES, ({ bytes }) => bytes)) {
    const files = await client.query<FileEntry>(
      `SELECT id, name, CASE WHEN path <> '{}' THEN path END AS path, nullif(content, '') AS content FROM files
       WHERE id = ANY ($1::uuid[]) ORDER BY array_position($1::uuid[], id)`,
      [chunk.map(({ id }) => id)],
    )
    yield* files.rows
  }
}
