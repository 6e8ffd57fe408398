import { type ApprovalMode, trimWhiteSpace } from '@workflow-service/contract'
import {
  column,
  type Database,
  type Db,
  foldCase,
  inTransaction,
  runStatement,
  statement,
  violatedConstraint,
} from '../connection/index.ts'
import { assertQuotas, type AuditedBy, changedFields, recordAuditEvent } from '../organizations/index.ts'
import { endApprovalsOfSource } from './end-approvals.ts'

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

const LIST_SOURCES = statement(
  'sources/list-webhook-sources',
  {
    id: column.uuid,
    organizationId: column.uuid,
    name: column.text(),
    description: column.text(),
    endpointUrl: column.text(),
    hasSigningSecret: column.boolean,
    exampleRequestBody: column.json<Record<string, unknown>>(),
    createdAt: column.timestamptz,
    updatedAt: column.timestamptz,
    verifiedAt: column.timestamptz.orNull,
    version: column.integer,
    approval: column.text<ApprovalMode>(),
  },
  { COLUMNS },
)

/** The organization's sources that are not deleted, sorted by name in code point order. */
export async function listWebhookSources(db: Db, organizationId: string): Promise<WebhookSource[]> {
  return (await runStatement(db, LIST_SOURCES, [organizationId])).rows
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

/**
 * Why a payload is declined that waits for an approval, or was approved, when the URL changes. An agent reads it: it
 * names no URL.
 */
const URL_CHANGED =
  'The URL of the webhook source was changed before the payload was sent. Start again to ask for an approval with the new one.'

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
      if (seen === null && by) await assertQuotas(client, by)
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
    if (violatedConstraint(error) === 'webhook_sources_name') return { kind: 'name_taken' }
    throw error
  }
}

/**
 * Saves the settings of a source, if `seenVersion` is its version; a repeated call, whose settings are saved already,
 * writes nothing. Records an audit event if it is known who saves.
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

/**
 * Deletes the source and its secret; its log stays. False when there is none. Records an audit event if it is known who
 * deletes.
 */
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

/**
 * A name as it is compared: names differ neither by case, nor by the encoding of accents, nor by white space at the
 * ends.
 */
export function normalizedName(name: string): string {
  return foldCase(trimWhiteSpace(name).normalize('NFC')).normalize('NFC')
}
