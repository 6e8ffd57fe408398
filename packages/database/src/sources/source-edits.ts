import { type ApprovalMode, trimWhiteSpace } from '@workflow-service/contract'
import {
  column,
  type Database,
  type Db,
  foldCase,
  inPrismaTransaction,
  type RowOfStatement,
  runStatement,
  statement,
  type Transaction,
  violatedConstraint,
} from '../connection/index.ts'
import {
  assertQuotas,
  type AuditChange,
  type AuditedBy,
  changedFields,
  recordAuditEvent,
} from '../organizations/index.ts'
import type { Prisma } from '../generated/client.ts'
import { endApprovalsOfSource } from './end-approvals.ts'

const LIST_SOURCES = statement('sources/list-webhook-sources', {
  id: column.uuid,
  organizationId: column.uuid,
  name: column.text(),
  description: column.text(),
  endpointUrl: column.text(),
  hasSigningSecret: column.boolean,
  exampleRequestBody: column.json<Record<string, unknown>>(),
  createdAt: column.timestamptz,
  updatedAt: column.timestamptz,
  /** Null when it was saved without a verification request. */
  verifiedAt: column.timestamptz.orNull,
  /** Incremented by every save. */
  version: column.integer,
  /** Which payloads of runs wait for an approval. */
  approval: column.text<ApprovalMode>(),
  /** Null while it is not paused. */
  pausedAt: column.timestamptz.orNull,
})

/** A webhook source without its secret (contract README, "Webhook sources"). */
export type WebhookSource = RowOfStatement<typeof LIST_SOURCES>

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
  exampleRequestBody: Record<string, unknown>
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

/** The organization's sources that are not deleted, sorted by name in code point order. */
export async function listWebhookSources(db: Db, organizationId: string): Promise<WebhookSource[]> {
  return (await runStatement(db, LIST_SOURCES, [organizationId])).rows
}

/** The source, unless it belongs to another organization or is deleted. */
export async function findWebhookSource(
  { prisma }: Pick<Transaction, 'prisma'>,
  organizationId: string,
  sourceId: string,
): Promise<StoredWebhookSource | undefined> {
  const where = { organizationId, id: sourceId, deletedAt: null }
  const found = await prisma.webhookSource.findFirst({
    where,
    omit: { nameKey: true, deletedAt: true, approvedAt: true, pausedByName: true, resumedAt: true },
  })
  if (!found) return undefined
  return {
    ...found,
    signingSecret: found.signingSecret && Buffer.from(found.signingSecret),
    hasSigningSecret: found.signingSecret !== null,
    exampleRequestBody: found.exampleRequestBody as Record<string, unknown>,
    approval: found.approval as ApprovalMode,
  }
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
  db: Pick<Database, 'prisma'>,
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
  db: Database,
  organizationId: string,
  sourceId: string,
  { name, signingSecret, isVerified, ...change }: WebhookSourceChange,
  seen: WebhookSource | null,
  by?: AuditedBy,
): Promise<SaveOutcome> {
  const approval = change.approval ?? seen?.approval ?? 'none'
  const data = {
    name,
    nameKey: normalizedName(name),
    description: change.description,
    endpointUrl: change.endpointUrl,
    signingSecret: signingSecret && Uint8Array.from(signingSecret),
    exampleRequestBody: change.exampleRequestBody as Prisma.InputJsonObject,
    verifiedAt: isVerified ? new Date() : null,
    approval,
  }
  try {
    return await inPrismaTransaction(db, async (tx) => {
      let ended = 0
      if (seen === null) {
        if (by) await assertQuotas(tx, by)
        await tx.prisma.webhookSource.create({ data: { id: sourceId, organizationId, ...data } })
      } else {
        const isElsewhere = seen.endpointUrl !== change.endpointUrl
        const { count } = await tx.prisma.webhookSource.updateMany({
          where: { organizationId, id: sourceId, version: seen.version, deletedAt: null },
          data: {
            ...data,
            // Another endpoint, or another mode, needs a first approval again.
            ...(isElsewhere || seen.approval !== approval ? { approvedAt: null } : {}),
            ...nextVersion(),
          },
        })
        if (count === 0) return { kind: 'changed_meanwhile' }
        if (isElsewhere) ended = await endApprovalsOfSource(tx, { organizationId, sourceId, reason: URL_CHANGED }, by)
      }
      const source = (await findWebhookSource(tx, organizationId, sourceId))!
      if (by) {
        const secretChange = {
          field: 'signing_secret',
          old: null,
          new: signingSecret === null ? 'removed' : 'replaced',
        }
        await recordSaved(tx, by, source, [
          ...changedFields(seen ? auditedValues(seen) : {}, auditedValues(source)),
          ...(signingSecret === undefined ? [] : [secretChange]),
          ...(ended === 0 ? [] : [{ field: 'approvals_ended', old: null, new: String(ended) }]),
        ])
      }
      return { kind: 'saved', source }
    })
  } catch (error) {
    const constraint = violatedConstraint(error)
    if (constraint === 'webhook_sources_name') return { kind: 'name_taken' }
    if (constraint === 'webhook_sources_pkey') return { kind: 'changed_meanwhile' }
    throw error
  }
}

/**
 * Saves the settings of a source, if `seenVersion` is its version; a repeated call, whose settings are saved already,
 * writes nothing. Records an audit event if it is known who saves.
 */
export async function saveWebhookSourceSettings(
  db: Database,
  organizationId: string,
  sourceId: string,
  { approval }: WebhookSourceSettings,
  seenVersion: number,
  by?: AuditedBy,
): Promise<Exclude<SaveOutcome, { kind: 'name_taken' }> | { kind: 'not_found' }> {
  return await inPrismaTransaction(db, async (tx) => {
    await tx.query('SELECT FROM webhook_sources WHERE organization_id = $1 AND id = $2 FOR UPDATE', [
      organizationId,
      sourceId,
    ])
    const stored = await findWebhookSource(tx, organizationId, sourceId)
    if (!stored) return { kind: 'not_found' }
    if (stored.approval === approval) return { kind: 'saved', source: stored }
    if (stored.version !== seenVersion) return { kind: 'changed_meanwhile' }
    // Another mode needs a first approval again.
    const data = { approval, approvedAt: null, ...nextVersion() }
    await tx.prisma.webhookSource.update({ where: { id: sourceId }, data })
    if (by) await recordSaved(tx, by, stored, changedFields({ approval: stored.approval }, { approval }))
    return { kind: 'saved', source: (await findWebhookSource(tx, organizationId, sourceId))! }
  })
}

/** What each save changes besides. */
const nextVersion = () => ({ updatedAt: new Date(), version: { increment: 1 } })

async function recordSaved(
  tx: Transaction,
  by: AuditedBy,
  { id, name }: WebhookSource,
  changes: readonly AuditChange[],
): Promise<void> {
  const target = { kind: 'webhook_source', id, name }
  await recordAuditEvent(tx, { ...by, action: 'webhook_source.saved', target, changes })
}

function auditedValues({ name, description, endpointUrl, exampleRequestBody, approval }: WebhookSource): object {
  const example = JSON.stringify(exampleRequestBody)
  return { name, description, endpoint_url: endpointUrl, example_request_body: example, approval }
}

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
 * deletes. If it was paused, `wakePausedSessions` lets its runs go on.
 */
export async function deleteWebhookSource(
  db: Database,
  organizationId: string,
  sourceId: string,
  by?: AuditedBy,
): Promise<boolean> {
  return await inPrismaTransaction(db, async (tx) => {
    const now = new Date()
    const [deleted] = await tx.prisma.webhookSource.updateManyAndReturn({
      where: { organizationId, id: sourceId, deletedAt: null },
      data: { deletedAt: now, signingSecret: null, pausedAt: null, resumedAt: now, version: { increment: 1 } },
      select: { name: true },
    })
    if (!deleted) return false
    const target = { kind: 'webhook_source', id: sourceId, name: deleted.name }
    if (by) await recordAuditEvent(tx, { ...by, action: 'webhook_source.deleted', target })
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
