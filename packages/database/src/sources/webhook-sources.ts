import { type ApprovalMode, type AppWebhookSourceOut, trimWhiteSpace } from '@workflow-service/contract'
import { DatabaseError } from 'pg'
import { endApprovalsOfSource } from './end-approvals.ts'
import { type AuditedBy, changedFields, isVisible, recordAuditEvent, type Viewer } from '../organizations/index.ts'
import {
  BOUNDED_EXAMPLE,
  type Database,
  datesToIso,
  type Db,
  foldCase,
  inTransaction,
  type NamedStatement,
  type RowOf,
  runStatement,
} from '../connection/index.ts'

/** A webhook source without its secret (contract README, "Webhook sources"). */
export interface WebhookSource {
  id: string
  organizationId: string
  name: string
  description: string
  endpointUrl: string
  hasSigningSecret: boolean
  exampleRequestBody: Record<string, unknown>
  createdAt: Date
  updatedAt: Date
  /** Null when it was saved without a verification request. */
  verifiedAt: Date | null
  /** Incremented by every save. */
  version: number
  /** Which payloads of runs wait for an approval. */
  approval: ApprovalMode
}

/** A stored source, as the dispatcher needs it for a save or a test. */
export interface StoredWebhookSource extends WebhookSource {
  /** Encrypted; null when there is none. */
  signingSecret: Buffer | null
}

/** What a save would replace, or why it is refused. */
export type SaveTarget =
  | { kind: 'new' }
  | { kind: 'stored'; source: StoredWebhookSource }
  | { kind: 'no_organization' }
  /** The id belongs to a source of another organization, or to a deleted one. */
  | { kind: 'id_taken' }
  /** Another source of the organization has the name. */
  | { kind: 'name_taken' }

/** The values that a save writes. */
export interface WebhookSourceChange {
  name: string
  description: string
  endpointUrl: string
  /** Encrypted; null removes it; undefined keeps the stored one. */
  signingSecret: Buffer | null | undefined
  /** JSON text of an object. */
  exampleRequestBody: string
  isVerified: boolean
  /** Undefined keeps the stored one; `none` for a new source. */
  approval: ApprovalMode | undefined
}

/** The result of a save. `changed_meanwhile`: another save or a deletion came first, and nothing was written. */
export type SaveOutcome =
  | { kind: 'saved'; source: WebhookSource }
  | { kind: 'changed_meanwhile' }
  | { kind: 'name_taken' }

/** The settings of a source that the contract does not name: its endpoint does not confirm them. */
export type WebhookSourceSettings = Pick<WebhookSource, 'approval'>

/** The columns of a `WebhookSource`. */
const COLUMNS = `id, organization_id AS "organizationId", name, description, endpoint_url AS "endpointUrl",
  signing_secret IS NOT NULL AS "hasSigningSecret", example_request_body AS "exampleRequestBody",
  created_at AS "createdAt", updated_at AS "updatedAt", verified_at AS "verifiedAt", version, approval`

const LIST_SOURCES: NamedStatement = {
  name: 'list-webhook-sources',
  text: `
    SELECT ${COLUMNS}
    FROM webhook_sources
    WHERE organization_id = $1 AND deleted_at IS NULL ORDER BY name COLLATE "C", id`,
}

/** The organization's sources that are not deleted, sorted by name in code point order. */
export async function listWebhookSources(db: Db, organizationId: string): Promise<WebhookSource[]> {
  return (await runStatement<WebhookSource>(db, LIST_SOURCES, [organizationId])).rows
}

/** What an agent may know of a source: neither the URL nor the secret. */
export interface SourceForAgent {
  readonly id: string
  readonly name: string
  readonly description: string
  /** Null when it was stored before there were limits and is larger than EXAMPLE_MAX_BYTES. */
  readonly exampleRequestBody: Record<string, unknown> | null
}

/** A webhook source that an agent may read. */
export interface SourceName {
  readonly id: string
  readonly name: string
}

// At most 20 sources with 16 KiB of descriptions and examples, the most that an acquisition reads too. pg_column_size reads no
// large value: a compressed example of more than 2 KiB counts as too large.
const LIST_SMALL_SOURCES: NamedStatement = {
  name: 'list-small-sources',
  text: `
    SELECT organization_id AS "organizationId", coalesce(json_agg(json_build_object(
      'id', id, 'name', name, 'description', description, 'exampleRequestBody', example_request_body
    ) ORDER BY name COLLATE "C", id) FILTER (WHERE id IS NOT NULL), '[]') AS sources
    FROM (
      SELECT organization.id AS organization_id, source.*, count(*) OVER in_organization AS count,
        sum(source.bytes) OVER in_organization AS total_bytes
      FROM (SELECT DISTINCT unnest($1::uuid[]) AS id) AS organization
      LEFT JOIN LATERAL (
        SELECT id, name, description, example_request_body, octet_length(description) +
          CASE WHEN pg_column_size(example_request_body) <= 2048
            THEN octet_length(example_request_body::text) ELSE 1048576 END AS bytes
        FROM webhook_sources
        WHERE organization_id = organization.id AND deleted_at IS NULL
        LIMIT 21
      ) AS source ON true
      WINDOW in_organization AS (PARTITION BY organization.id)
    ) AS counted
    WHERE count <= 20 AND coalesce(total_bytes, 0) <= 16384
    GROUP BY organization_id`,
}

/**
 * The sources of several organizations that are not deleted, by organization, sorted by name in code point order. An organization whose
 * sources are many or large has no entry: `listSourceNames` and `readSources` read those in parts.
 */
export async function listSmallSources(
  db: Db,
  organizationIds: readonly string[],
): Promise<ReadonlyMap<string, readonly SourceForAgent[]>> {
  const { rows } = await runStatement<{ organizationId: string; sources: SourceForAgent[] }>(db, LIST_SMALL_SOURCES, [
    organizationIds,
  ])
  return new Map(rows.map(({ organizationId, sources }) => [organizationId, sources]))
}

const LIST_SOURCE_NAMES: NamedStatement = {
  name: 'list-source-names',
  text: `
    SELECT id, name FROM webhook_sources
    WHERE organization_id = $1 AND deleted_at IS NULL ORDER BY name COLLATE "C", id`,
}

/** The names of the organization's sources that are not deleted, sorted by name in code point order. */
export async function listSourceNames(db: Db, organizationId: string): Promise<readonly SourceName[]> {
  return (await runStatement<SourceName>(db, LIST_SOURCE_NAMES, [organizationId])).rows
}

/** A source that a search found, with the first 1,000 characters of its description. */
export interface FoundSource extends SourceName {
  readonly description: string
}

/** The organization's sources whose name or description has one of the words in lower case; first those with the most of them. */
export async function searchSources(
  db: Db,
  organizationId: string,
  words: readonly string[],
  limit: number,
): Promise<readonly FoundSource[]> {
  // OFFSET 0 keeps the planner from computing the lower case for each word: 20 words in 1,000 long descriptions took 1 s, not 0.2 s.
  const { rows } = await db.pool.query<FoundSource>(
    `SELECT id, name, left(description, 1000) AS description
     FROM (
       SELECT id, name, description, lower(name || ' ' || description) AS searched FROM webhook_sources
       WHERE organization_id = $1 AND deleted_at IS NULL
       OFFSET 0
     ) AS source, LATERAL (
       SELECT count(*) AS hits FROM unnest($2::text[]) AS word WHERE position(word IN searched) > 0
     ) AS counted
     WHERE hits > 0
     ORDER BY hits DESC, name COLLATE "C", id LIMIT $3`,
    [organizationId, words, limit],
  )
  return rows
}

/** The organization's sources that are not deleted with whether their endpoints have confirmed, sorted like the names. */
export async function listSourceStates(
  db: Db,
  organizationId: string,
): Promise<readonly (SourceName & { readonly is_verified: boolean })[]> {
  const { rows } = await db.pool.query<SourceName & { is_verified: boolean }>(
    `SELECT id, name, verified_at IS NOT NULL AS is_verified FROM webhook_sources
     WHERE organization_id = $1 AND deleted_at IS NULL ORDER BY name COLLATE "C", id`,
    [organizationId],
  )
  return rows
}

const READ_SOURCES: NamedStatement = {
  name: 'read-sources',
  text: `
    SELECT id, name, description, ${BOUNDED_EXAMPLE} AS "exampleRequestBody" FROM webhook_sources
    WHERE id = ANY ($2::uuid[]) AND organization_id = $1 AND deleted_at IS NULL
    ORDER BY array_position($2::uuid[], id)`,
}

/** Those of the sources that are the organization's and not deleted, in the order of `ids`. */
export async function readSources(
  db: Db,
  organizationId: string,
  ids: readonly string[],
): Promise<readonly SourceForAgent[]> {
  return (await runStatement<SourceForAgent>(db, READ_SOURCES, [organizationId, ids])).rows
}

/** The source, unless it belongs to another organization or is deleted. */
export async function findWebhookSource(
  db: Db,
  organizationId: string,
  sourceId: string,
): Promise<StoredWebhookSource | undefined> {
  const { rows } = await db.pool.query<StoredWebhookSource>(
    `SELECT ${COLUMNS}, signing_secret AS "signingSecret"
     FROM webhook_sources
     WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL`,
    [organizationId, sourceId],
  )
  return rows[0]
}

/** Whether the organization has, had or tried to save the source: the log of a deleted source stays readable. */
export async function hasWebhookSourceLog(
  db: Pick<Database, 'prisma'>,
  organizationId: string,
  sourceId: string,
): Promise<boolean> {
  const where = { organizationId, id: sourceId }
  if (await db.prisma.webhookSource.findFirst({ where, select: { id: true } })) return true
  const logged = { where: { organizationId, sourceId }, select: { id: true } }
  return (await db.prisma.delivery.findFirst(logged)) !== null
}

/** What a save of this id under this name would replace, or why it is refused. */
export async function findSaveTarget(
  db: Pick<Database, 'pool' | 'prisma'>,
  organizationId: string,
  sourceId: string,
  name: string,
): Promise<SaveTarget> {
  const organization = await db.prisma.organization.findUnique({ where: { id: organizationId }, select: { id: true } })
  if (!organization) return { kind: 'no_organization' }
  const taken = await db.prisma.webhookSource.findMany({
    where: { OR: [{ id: sourceId }, { organizationId, nameKey: normalizedName(name), deletedAt: null }] },
    select: { id: true, organizationId: true, deletedAt: true },
  })
  const sameId = taken.find(({ id }) => id === sourceId)
  if (sameId && (sameId.organizationId !== organizationId || sameId.deletedAt)) return { kind: 'id_taken' }
  if (taken.some(({ id }) => id !== sourceId)) return { kind: 'name_taken' }
  const source = await findWebhookSource(db, organizationId, sourceId)
  return source ? { kind: 'stored', source } : { kind: 'new' }
}

/** Why a payload is declined that waits for an approval, or was approved, when the URL changes. An agent reads it: it names no URL. */
const URL_CHANGED =
  'The URL of the webhook source was changed before the payload was sent. Start again to ask for an approval with the new one.'

/**
 * Saves the source, if it is still the one that the caller saw: `seen` is the stored source, or null when there was none. Another URL
 * ends the approvals of payloads that were not sent yet. Records an audit event if it is known who saves.
 */
export async function saveWebhookSource(
  db: Db,
  organizationId: string,
  sourceId: string,
  change: WebhookSourceChange,
  seen: WebhookSource | null,
  by?: AuditedBy,
): Promise<SaveOutcome> {
  const values = [
    organizationId,
    sourceId,
    change.name,
    normalizedName(change.name),
    change.description,
    change.endpointUrl,
    change.signingSecret ?? null,
    change.exampleRequestBody,
    change.isVerified,
    change.approval ?? seen?.approval ?? 'none',
  ]
  try {
    const source = await inTransaction(db, async (client) => {
      const { rows } =
        seen === null
          ? await client.query<WebhookSource>(INSERT_SOURCE, values)
          : await client.query<WebhookSource>(UPDATE_SOURCE, [
              ...values,
              seen.version,
              change.signingSecret !== undefined,
            ])
      const [saved] = rows
      if (!saved) return saved
      const ended =
        seen === null || seen.endpointUrl === saved.endpointUrl
          ? 0
          : await endApprovalsOfSource(client, { organizationId, sourceId, reason: URL_CHANGED }, by)
      if (!by) return saved
      const { signingSecret: secret } = change
      const secretChange = { field: 'signing_secret', old: null, new: secret === null ? 'removed' : 'replaced' }
      await recordAuditEvent(client, {
        ...by,
        action: 'webhook_source.saved',
        target: { kind: 'webhook_source', id: sourceId, name: saved.name },
        changes: [
          ...changedFields(seen ? auditedValues(seen) : {}, auditedValues(saved)),
          ...(secret === undefined ? [] : [secretChange]),
          ...(ended === 0 ? [] : [{ field: 'approvals_ended', old: null, new: String(ended) }]),
        ],
      })
      return saved
    })
    return source ? { kind: 'saved', source } : { kind: 'changed_meanwhile' }
  } catch (error) {
    if (error instanceof DatabaseError && error.code === '23505' && error.constraint === 'webhook_sources_name') {
      return { kind: 'name_taken' }
    }
    throw error
  }
}

/**
 * Saves the settings of a source, if `seenVersion` is its version; a repeated call, whose settings are saved already, writes
 * nothing. Records an audit event if it is known who saves.
 */
export async function saveWebhookSourceSettings(
  db: Db,
  organizationId: string,
  sourceId: string,
  { approval }: WebhookSourceSettings,
  seenVersion: number,
  by?: AuditedBy,
): Promise<Exclude<SaveOutcome, { kind: 'name_taken' }> | { kind: 'not_found' }> {
  return await inTransaction(db, async (client) => {
    const { rows } = await client.query<WebhookSource>(
      `SELECT ${COLUMNS} FROM webhook_sources WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL FOR UPDATE`,
      [organizationId, sourceId],
    )
    const [stored] = rows
    if (!stored) return { kind: 'not_found' }
    if (stored.approval === approval) return { kind: 'saved', source: stored }
    if (stored.version !== seenVersion) return { kind: 'changed_meanwhile' }
    // Another mode needs a first approval again.
    const updated = await client.query<WebhookSource>(
      `UPDATE webhook_sources SET approval = $3, approved_at = NULL, updated_at = now(), version = version + 1
       WHERE organization_id = $1 AND id = $2 RETURNING ${COLUMNS}`,
      [organizationId, sourceId, approval],
    )
    const source = updated.rows[0]!
    if (by) {
      await recordAuditEvent(client, {
        ...by,
        action: 'webhook_source.saved',
        target: { kind: 'webhook_source', id: sourceId, name: source.name },
        changes: changedFields({ approval: stored.approval }, { approval }),
      })
    }
    return { kind: 'saved', source }
  })
}

function auditedValues({ name, description, endpointUrl, exampleRequestBody, approval }: WebhookSource): object {
  const example = JSON.stringify(exampleRequestBody)
  return { name, description, endpoint_url: endpointUrl, example_request_body: example, approval }
}

const INSERT_SOURCE = `
  INSERT INTO webhook_sources (organization_id, id, name, name_key, description, endpoint_url, signing_secret,
    example_request_body, verified_at, approval)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, CASE WHEN $9 THEN now() END, $10)
  ON CONFLICT (id) DO NOTHING
  RETURNING ${COLUMNS}`

// Another endpoint, or another mode, needs a first approval again.
const UPDATE_SOURCE = `
  UPDATE webhook_sources SET name = $3, name_key = $4, description = $5, endpoint_url = $6,
    signing_secret = CASE WHEN $12 THEN $7 ELSE signing_secret END, example_request_body = $8,
    verified_at = CASE WHEN $9 THEN now() END, approval = $10,
    approved_at = CASE WHEN endpoint_url = $6 AND approval = $10 THEN approved_at END,
    updated_at = now(), version = version + 1
  WHERE organization_id = $1 AND id = $2 AND version = $11 AND deleted_at IS NULL
  RETURNING ${COLUMNS}`

/** Records that the endpoint confirmed the stored source, unless another save came first. */
export async function confirmWebhookSource(
  db: Pick<Database, 'prisma'>,
  organizationId: string,
  sourceId: string,
  seenVersion: number,
): Promise<void> {
  await db.prisma.webhookSource.updateMany({
    where: { organizationId, id: sourceId, version: seenVersion, deletedAt: null },
    data: { verifiedAt: new Date() },
  })
}

/** Deletes the source and its secret; its log stays. False when there is none. Records an audit event if it is known who deletes. */
export async function deleteWebhookSource(
  db: Db,
  organizationId: string,
  sourceId: string,
  by?: AuditedBy,
): Promise<boolean> {
  return await inTransaction(db, async (client) => {
    const { rows } = await client.query<{ name: string }>(
      `UPDATE webhook_sources SET deleted_at = now(), signing_secret = NULL, version = version + 1
       WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL RETURNING name`,
      [organizationId, sourceId],
    )
    if (!rows[0]) return false
    const target = { kind: 'webhook_source', id: sourceId, name: rows[0].name }
    if (by) await recordAuditEvent(client, { ...by, action: 'webhook_source.deleted', target })
    return true
  })
}

/** A name as it is compared: names differ neither by case, nor by the encoding of accents, nor by white space at the ends. */
export function normalizedName(name: string): string {
  return foldCase(trimWhiteSpace(name).normalize('NFC')).normalize('NFC')
}

/** The newest request of a kind to a source, as far as a member may see it. 100 entries of the log are read at most. */
const lastRequest = (kind: 'verification' | 'payload') => `(
  SELECT json_build_object('id', delivery.id, 'outcome', delivery.outcome, 'reason', delivery.reason,
    'created_at', to_char(delivery.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
  FROM (
    SELECT id, organization_id, kind, run_id, outcome, reason, created_at FROM deliveries
    WHERE source_id = source.id ${kind === 'verification' ? "AND kind = 'verification'" : ''}
    ORDER BY created_at DESC, id DESC LIMIT ${kind === 'verification' ? 1 : 100}
  ) AS delivery
  WHERE delivery.kind = '${kind}' AND delivery.organization_id = $1
    AND ($2::uuid IS NULL OR delivery.run_id IS NULL OR (
      SELECT ${isVisible('workflow', '$2')} FROM starts JOIN workflows AS workflow ON workflow.id = starts.workflow_id
      WHERE starts.id = delivery.run_id
    ))
  ORDER BY delivery.created_at DESC, delivery.id DESC LIMIT 1
)`

/** The organization's sources with their last requests, sorted by name in code point order; or only the one of this id. */
export async function listSourcesWithLastRequests(
  db: Db,
  { organizationId, memberId }: Viewer,
  sourceId?: string,
): Promise<AppWebhookSourceOut[]> {
  const { rows } = await db.pool.query<RowOf<AppWebhookSourceOut>>(
    `SELECT id, organization_id, name, description, endpoint_url, signing_secret IS NOT NULL AS has_signing_secret,
       example_request_body, created_at, updated_at, verified_at, version::text AS version, approval,
       ${lastRequest('verification')} AS last_verification, ${lastRequest('payload')} AS last_payload
     FROM webhook_sources AS source
     WHERE organization_id = $1 AND deleted_at IS NULL ${sourceId === undefined ? '' : 'AND id = $3'}
     ORDER BY name COLLATE "C", id`,
    sourceId === undefined ? [organizationId, memberId] : [organizationId, memberId, sourceId],
  )
  return rows.map((row) => datesToIso<AppWebhookSourceOut>(row))
}
