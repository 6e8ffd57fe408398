import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Manifest, MANIFEST_EXPORT_MAX_BYTES, parseWithSource } from '@workflow-service/contract'
import type { PoolClient } from 'pg'
import { type Db, inTransaction, isoTime } from '../connection/index.ts'
import { ManifestError } from './manifest-errors.ts'
import { createManifestWriter, type ManifestFormat, type WriteText } from './manifest-writer.ts'

type WorkflowEntry = NonNullable<Manifest['workflows']>[number]
type TriggerEntry = NonNullable<WorkflowEntry['triggers']>[number]

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
    if (isPortable && workflowId === undefined) await assertNamesAreUnique(client, organizationId)
    const shown = isPortable ? withoutIdsAndTimes : <Entry extends object>(entry: Entry) => entry
    const writer = createManifestWriter(format, write, isPortable)
    const read = createReader(client)
    writer.begin(shown(organization))
    for await (const user of read('users', 1_000, SELECT_USERS, organizationId, workflowId)) writer.item('users', user)
    if (workflowId === undefined) {
      const advice = isPortable ? ': give the copy its own.' : '. An apply keeps it.'
      for await (const { hasSecret, ...source } of read('sources', 50, SELECT_SOURCES, organizationId)) {
        writer.item('webhook_sources', shown(source), hasSecret ? `A signing secret is set${advice}` : undefined)
      }
      for await (const { hasSecret, ...lookup } of read('look_ups', 50, SELECT_LOOKUPS, organizationId)) {
        writer.item('lookups', shown(lookup), hasSecret ? `The header has a value${advice}` : undefined)
      }
    }
    for await (const workflow of read<{ id: string }>('workflows', 20, SELECT_WORKFLOWS, organizationId, workflowId)) {
      writer.item('workflows', shown(workflow))
      for await (const trigger of read<StoredTrigger>('triggers', 20, SELECT_TRIGGERS, workflow.id)) {
        writer.part('triggers', shown(withFilters(trigger)))
      }
      for await (const file of read('files', 4, SELECT_FILES, workflow.id)) writer.part('files', shown(file))
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

/**
 * Returns a function that reads the rows of a statement with a cursor of the transaction, `count` at a time: a source
 * may have 64 KiB, a workflow 50 KB and each of its triggers as much, a file 1 MiB. It lets others use the event loop
 * when the caller has used it for 5 ms.
 */
function createReader(client: PoolClient) {
  let startedMs = performance.now()
  return async function* read<Row extends object = Record<string, unknown>>(
    cursor: string,
    count: number,
    select: string,
    ...values: (string | undefined)[]
  ): AsyncGenerator<Row> {
    await client.query(`DECLARE ${cursor} CURSOR FOR ${select}`, values)
    for (let isLast = false; !isLast;) {
      const { rows } = await client.query<Row>(`FETCH ${count} FROM ${cursor}`)
      for (const row of rows) {
        yield row
        if (performance.now() - startedMs < MAX_BUSY_MS) continue
        await nextTurn()
        startedMs = performance.now()
      }
      isLast = rows.length < count
    }
    await client.query(`CLOSE ${cursor}`)
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

const SELECT_USERS = `
  SELECT email, nullif(first_name, '') AS first_name, nullif(last_name, '') AS last_name FROM users
  WHERE organization_id = $1
    AND ($2::uuid IS NULL OR EXISTS (SELECT FROM workflow_users WHERE workflow_id = $2 AND user_id = users.id))
  ORDER BY email`

const SELECT_SOURCES = `
  SELECT signing_secret IS NOT NULL AS "hasSecret", id, name, description, endpoint_url, example_request_body,
    nullif(approval, 'none') AS approval, CASE WHEN verified_at IS NULL THEN false END AS verify
  FROM webhook_sources WHERE organization_id = $1 AND deleted_at IS NULL ORDER BY name_key`

const SELECT_LOOKUPS = `
  SELECT id, name, kind, url, header_name, header_value IS NOT NULL AS "hasSecret",
    CASE kind WHEN 'mcp' THEN (
      SELECT json_agg(json_build_object('name', tool ->> 'name') ORDER BY position)
      FROM json_array_elements(tools) WITH ORDINALITY AS each (tool, position)
    ) ELSE tools END AS tools
  FROM lookups WHERE organization_id = $1 ORDER BY name_key`

const SELECT_WORKFLOWS = `
  SELECT id, name, nullif(description, '') AS description, scope, is_active,
    CASE WHEN auto_run_enabled IS NOT NULL THEN (
      SELECT json_object_agg(key, value) FROM json_each(json_build_object(
        'enabled', auto_run_enabled, 'frequency', auto_run_frequency, 'timing', auto_run_timing
      )) WHERE json_typeof(value) <> 'null'
    ) END AS auto_run,
    model, run_budget / 1e6::float8 AS run_budget, day_budget / 1e6::float8 AS day_budget,
    nullif(when_spent, 'fail') AS when_spent, ${isoTime('created_at')} AS created_at, ${isoTime('updated_at')} AS updated_at,
    (SELECT coalesce(array_agg(users.email ORDER BY users.email), '{}') FROM workflow_users access
      JOIN users ON users.id = access.user_id WHERE access.workflow_id = workflows.id) AS users,
    CASE WHEN NOT EXISTS (SELECT FROM triggers WHERE workflow_id = workflows.id) THEN '{}'::text[] END AS triggers
  FROM workflows WHERE organization_id = $1 AND deleted_at IS NULL AND ($2::uuid IS NULL OR id = $2)
  ORDER BY workflows.created_at, id`

const SELECT_TRIGGERS = `
  SELECT t.id, nullif(t.name, '') AS name, t.is_active,
    json_build_object('slug', t.source_slug, 'name', t.source_name) AS trigger_source,
    (SELECT json_agg(json_build_object('slug', e.slug, 'name', e.name) ORDER BY e.position)
      FROM trigger_events e WHERE e.trigger_id = t.id) AS events,
    t.filters::text AS filters, nullif(t.input_message, '') AS input_message,
    (SELECT json_agg(json_strip_nulls(json_build_object('id', s.source_id, 'name', s.name, 'type', s.type))
      ORDER BY s.position) FROM subagent_sources s WHERE s.trigger_id = t.id) AS subagent_sources,
    ${isoTime('created_at')} AS created_at
  FROM triggers t WHERE t.workflow_id = $1 ORDER BY t.created_at, t.id`

const SELECT_FILES = `
  SELECT id, name, CASE WHEN path <> '{}' THEN path END AS path, nullif(content, '') AS content
  FROM files WHERE workflow_id = $1 ORDER BY files.path, files.name, id`

type StoredTrigger = Omit<TriggerEntry, 'filters'> & { filters: string | null }

function withFilters(trigger: StoredTrigger): object {
  return { ...trigger, filters: trigger.filters && parseWithSource(trigger.filters, keepDigits) }
}

/** Keeps all digits of integers that a JavaScript number would round: filters are exported as they are stored. */
function keepDigits(_key: string, value: unknown, { source = '' }: { readonly source?: string }): unknown {
  return typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(source) ? BigInt(source) : value
}
