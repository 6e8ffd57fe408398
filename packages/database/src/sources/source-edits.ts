import {
  type ApprovalMode,
  trimWhiteSpace,
  type WebhookSourceIn,
  type WebhookSourceOut,
} from '@workflow-service/contract'
import {
  column,
  type Connection,
  datesToIso,
  type Db,
  foldCase,
  inTransaction,
  kindOfViolation,
  type Queryable,
  runStatement,
  sql,
  statement,
} from '../connection/index.ts'
import {
  assertQuota,
  type AuditChange,
  type AuditedBy,
  changedFields,
  recordAuditEvent,
  secretChanges,
} from '../organizations/index.ts'
import { endApprovalsOfSource } from './end-approvals.ts'

const COLUMNS = {
  id: column.uuid,
  organization_id: column.uuid,
  name: column.text(),
  description: column.text(),
  endpoint_url: column.text(),
  has_signing_secret: column.boolean,
  example_request_body: column.json<Record<string, unknown>>(),
  created_at: column.timestamptz,
  updated_at: column.timestamptz,
  verified_at: column.timestamptz.orNull,
  version: column.integer,
  approval: column.text<ApprovalMode>(),
  paused_at: column.timestamptz.orNull,
}
const SOURCE_COLUMNS = { COLUMNS: sql('sources/source-columns') }
const LIST_SOURCES = statement('sources/list-webhook-sources', COLUMNS, SOURCE_COLUMNS)
const FIND_SOURCE = statement(
  'sources/find-webhook-source',
  { ...COLUMNS, signingSecret: column.bytea.orNull },
  SOURCE_COLUMNS,
)
const FIND_REFUSAL = statement('sources/find-save-refusal', { refusal: column.text<SaveRefusal>().orNull })
const INSERT_SOURCE = statement('sources/insert-webhook-source', COLUMNS, SOURCE_COLUMNS)
const UPDATE_SOURCE = statement('sources/update-webhook-source', COLUMNS, SOURCE_COLUMNS)

/** A stored source with its secret, encrypted; null when there is none. */
export interface StoredWebhookSource {
  readonly source: WebhookSourceOut
  readonly signingSecret: Buffer | null
}

/**
 * Why a save is refused. `id_taken`: the id belongs to something of another organization, or that is deleted;
 * `name_taken`: another source or look-up of the organization has the name.
 */
export type SaveRefusal = 'no_organization' | 'id_taken' | 'name_taken'

/** The values that a save writes; without `approval`, the stored one is kept. */
export interface WebhookSourceChange extends Omit<WebhookSourceIn, 'signing_secret'> {
  /** Encrypted; null removes it; undefined keeps the stored one. */
  signingSecret: Buffer | null | undefined
  isVerified: boolean
}

/** The result of a save. `changed_meanwhile`: another save or a deletion came first, and nothing was written. */
export type SaveOutcome =
  | { kind: 'saved'; source: WebhookSourceOut }
  | { kind: 'changed_meanwhile' }
  | { kind: 'name_taken' }

/** Settings in place of those of `version`, which the contract does not name: the endpoint does not confirm them. */
export type WebhookSourceSettings = Pick<WebhookSourceOut, 'approval' | 'version'>

/** The organization's sources that are not deleted, sorted by name in code point order. */
export async function listWebhookSources(db: Db, organizationId: string): Promise<WebhookSourceOut[]> {
  return (await runStatement(db, LIST_SOURCES, [organizationId])).rows.map((row) => datesToIso<WebhookSourceOut>(row))
}

/** The source, unless it belongs to another organization or is deleted. */
export async function findWebhookSource(
  db: Connection,
  organizationId: string,
  sourceId: string,
): Promise<WebhookSourceOut | undefined> {
  return (await findStoredSource(db, organizationId, sourceId))?.source
}

/** The source with its encrypted secret, unless it belongs to another organization or is deleted. */
export async function findStoredSource(
  db: Connection,
  organizationId: string,
  sourceId: string,
): Promise<StoredWebhookSource | undefined> {
  const [row] = (await runStatement(db, FIND_SOURCE, [organizationId, sourceId])).rows
  if (!row) return undefined
  const { signingSecret, ...source } = row
  return { source: datesToIso<WebhookSourceOut>(source), signingSecret }
}

/** Whether the organization has, had or tried to save the source: the log of a deleted source stays readable. */
export async function hasWebhookSourceLog(db: Db, organizationId: string, sourceId: string): Promise<boolean> {
  const { rowCount } = await db.pool.query(
    `SELECT WHERE EXISTS (SELECT FROM webhook_sources WHERE organization_id = $1 AND id = $2)
       OR EXISTS (SELECT FROM deliveries WHERE organization_id = $1 AND source_id = $2)`,
    [organizationId, sourceId],
  )
  return rowCount === 1
}

/** Why a save of this id under this name is refused. */
export async function findSaveRefusal(db: Db, organizationId: string, sourceId: string, name: string) {
  return (await runStatement(db, FIND_REFUSAL, [organizationId, sourceId, normalizedName(name)])).rows[0]!.refusal
}

/**
 * Saves the source, if it is still the one that the caller saw: `seen` is the stored source, or null when there was
 * none. Another URL ends the approvals of payloads that were not sent yet. Records an audit event if it is known who
 * saves.
 * @throws QuotaExceededError
 */
export async function saveWebhookSource(
  db: Db,
  organizationId: string,
  sourceId: string,
  { name, description, endpoint_url: endpointUrl, signingSecret, isVerified, ...change }: WebhookSourceChange,
  seen: WebhookSourceOut | null,
  by?: AuditedBy,
): Promise<SaveOutcome> {
  const values = [
    organizationId,
    sourceId,
    name,
    normalizedName(name),
    description,
    endpointUrl,
    signingSecret ?? null,
    JSON.stringify(change.example_request_body),
    change.approval ?? seen?.approval ?? 'none',
    isVerified,
  ]
  try {
    return await inTransaction(db, async (client) => {
      const { rows } = seen
        ? await runStatement({ pool: client }, UPDATE_SOURCE, [...values, signingSecret !== undefined, seen.version])
        : await runStatement({ pool: client }, INSERT_SOURCE, values)
      if (!rows[0]) return { kind: 'changed_meanwhile' }
      const source = datesToIso<WebhookSourceOut>(rows[0])
      if (seen === null && by) await assertQuota(client, by, 'webhook_sources')
      const ended =
        seen && seen.endpoint_url !== endpointUrl
          ? await endApprovalsOfSource(client, { organizationId, sourceId }, 'url_changed', by)
          : 0
      if (by) {
        await recordSaved(client, by, source, [
          ...changedFields(seen ? auditedValues(seen) : {}, auditedValues(source)),
          ...secretChanges('signing_secret', signingSecret),
          ...approvalsEnded(ended),
        ])
      }
      return { kind: 'saved', source }
    })
  } catch (error) {
    return kindOfViolation(error, { webhook_sources_name: 'name_taken', webhook_sources_pkey: 'changed_meanwhile' })
  }
}

/**
 * Saves the settings of a source, if its version is still theirs; a repeated call, whose settings are saved already,
 * writes nothing. Records an audit event if it is known who saves.
 */
export async function saveWebhookSourceSettings(
  db: Db,
  organizationId: string,
  sourceId: string,
  { approval, version }: WebhookSourceSettings,
  by?: AuditedBy,
): Promise<Exclude<SaveOutcome, { kind: 'name_taken' }> | { kind: 'not_found' }> {
  const where = [organizationId, sourceId]
  return await inTransaction(db, async (client) => {
    await client.query('SELECT FROM webhook_sources WHERE organization_id = $1 AND id = $2 FOR UPDATE', where)
    const find = () => findWebhookSource({ pool: client }, organizationId, sourceId)
    const stored = await find()
    if (!stored) return { kind: 'not_found' }
    if (stored.approval === approval) return { kind: 'saved', source: stored }
    if (stored.version !== version) return { kind: 'changed_meanwhile' }
    // Another mode needs a first approval again.
    await client.query(
      `UPDATE webhook_sources SET approval = $3, approved_at = NULL, updated_at = now(), version = version + 1
       WHERE organization_id = $1 AND id = $2`,
      [...where, approval],
    )
    if (by) await recordSaved(client, by, stored, changedFields({ approval: stored.approval }, { approval }))
    return { kind: 'saved', source: (await find())! }
  })
}

async function recordSaved(
  client: Queryable,
  by: AuditedBy,
  { id, name }: WebhookSourceOut,
  changes: readonly AuditChange[],
): Promise<void> {
  const target = { kind: 'webhook_source', id, name }
  await recordAuditEvent(client, { ...by, action: 'webhook_source.saved', target, changes })
}

function approvalsEnded(count: number): AuditChange[] {
  return count === 0 ? [] : [{ field: 'approvals_ended', old: null, new: String(count) }]
}

function auditedValues({ name, description, endpoint_url, example_request_body, approval }: WebhookSourceOut): object {
  return { name, description, endpoint_url, example_request_body: JSON.stringify(example_request_body), approval }
}

/** Records that the endpoint confirmed the stored source, unless another save came first. */
export async function confirmWebhookSource(db: Db, organizationId: string, sourceId: string, version: number) {
  await db.pool.query(
    `UPDATE webhook_sources SET verified_at = now()
     WHERE organization_id = $1 AND id = $2 AND version = $3 AND deleted_at IS NULL`,
    [organizationId, sourceId, version],
  )
}

/**
 * Deletes the source and its secret, and declines payloads that wait for an approval; its log stays. False when there
 * is none. Records an audit event if it is known who deletes. If it was paused, `wakePausedSessions` wakes its runs.
 */
export async function deleteWebhookSource(db: Db, organizationId: string, sourceId: string, by?: AuditedBy) {
  return await inTransaction(db, async (client) => {
    const { rows } = await client.query<{ name: string }>(
      `UPDATE webhook_sources SET deleted_at = now(), signing_secret = NULL, paused_at = NULL, resumed_at = now(),
         version = version + 1
       WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL RETURNING name`,
      [organizationId, sourceId],
    )
    const [deleted] = rows
    if (!deleted) return false
    const changes = approvalsEnded(await endApprovalsOfSource(client, { organizationId, sourceId }, 'deleted', by))
    const target = { kind: 'webhook_source', id: sourceId, name: deleted.name }
    if (by) await recordAuditEvent(client, { ...by, action: 'webhook_source.deleted', target, changes })
    return true
  })
}

/**
 * A name as it is compared: names differ neither by case, nor by the encoding of accents, nor by white space at the
 * ends.
 */
export function normalizedName(name: string): string {
  return foldCase(trimWhiteSpace(name).normalize('NFC')).normalize('NFC')
}
