import { trimWhiteSpace } from '@workflow-service/contract'
import { DatabaseError } from 'pg'
import { runStatement, type Database, type NamedStatement } from './client.ts'
import type { WebhookSource as PrismaWebhookSource } from './generated/client.ts'
import { foldCase } from './fold-case.ts'

/** A webhook source as everybody may see it (contract 2): without its secret. */
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
  /** Null when it was recorded without the verification request. */
  verifiedAt: Date | null
}

/** A stored source as the dispatcher needs it for a save or a test. */
export interface StoredWebhookSource extends WebhookSource {
  /** Encrypted; null when there is none. */
  signingSecret: Buffer | null
  version: number
}

/** What stands in the way of a save, or what it would replace. */
export type SaveTarget =
  | { kind: 'new' }
  | { kind: 'stored'; source: StoredWebhookSource }
  | { kind: 'no_organization' }
  /** The id belongs to a source of another organization, or to a deleted one. */
  | { kind: 'id_taken' }
  /** Another source of the organization has the name. */
  | { kind: 'name_taken' }

/** What a save writes, all of it at once. */
export interface WebhookSourceChange {
  name: string
  description: string
  endpointUrl: string
  /** Encrypted; null removes it; undefined leaves what is stored. */
  signingSecret: Buffer | null | undefined
  /** JSON text of an object. */
  exampleRequestBody: string
  isVerified: boolean
}

/** `changed_meanwhile`: another save or a deletion came between, and nothing was written. */
export type SaveOutcome =
  | { kind: 'saved'; source: WebhookSource }
  | { kind: 'changed_meanwhile' }
  | { kind: 'name_taken' }

interface SourceRow {
  id: string
  organization_id: string
  name: string
  description: string
  endpoint_url: string
  signing_secret: Buffer | null
  example_request_body: Record<string, unknown>
  created_at: Date
  updated_at: Date
  verified_at: Date | null
}

const COLUMNS = `id, organization_id, name, description, endpoint_url, signing_secret, example_request_body,
  created_at, updated_at, verified_at`

/** Every source of the organization that is not deleted, sorted by name in code point order. */
export async function listWebhookSources(db: Pick<Database, 'pool'>, organizationId: string): Promise<WebhookSource[]> {
  const found = await runStatement<SourceRow>(db, LIST_SOURCES, [organizationId])
  return found.rows.map(toWebhookSource)
}

const LIST_SOURCES: NamedStatement = {
  name: 'list_webhook_sources',
  text: `SELECT ${COLUMNS} FROM webhook_sources
    WHERE organization_id = $1 AND deleted_at IS NULL ORDER BY name COLLATE "C", id`,
}

/** What an agent may know of a source: neither the URL nor the secret. */
export interface SourceForAgent {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly exampleRequestBody: Record<string, unknown>
}

/** A query for the sources of the organizations that the SQL expression, an array, names; in order for each of them. */
export function sourcesForAgentsSql(organizationIds: string): string {
  return `SELECT organization_id, id, name, description, example_request_body FROM webhook_sources
    WHERE organization_id = ANY (${organizationIds}) AND deleted_at IS NULL
    ORDER BY organization_id, name COLLATE "C", id`
}

export interface SourceForAgentRow {
  organization_id: string
  id: string
  name: string
  description: string
  example_request_body: Record<string, unknown>
}

/** By organization; one without sources has no entry. */
export function toSourcesForAgents(rows: readonly SourceForAgentRow[]): ReadonlyMap<string, readonly SourceForAgent[]> {
  const byOrganization = new Map<string, SourceForAgent[]>()
  for (const { organization_id: organizationId, example_request_body: exampleRequestBody, ...row } of rows) {
    const source = { id: row.id, name: row.name, description: row.description, exampleRequestBody }
    const others = byOrganization.get(organizationId)
    if (others) others.push(source)
    else byOrganization.set(organizationId, [source])
  }
  return byOrganization
}

/** The sources of several organizations that are not deleted, each one's sorted by name in code point order. */
export async function listSourcesForAgents(
  db: Pick<Database, 'pool'>,
  organizationIds: readonly string[],
): Promise<ReadonlyMap<string, readonly SourceForAgent[]>> {
  const { rows } = await runStatement<SourceForAgentRow>(db, LIST_SOURCES_FOR_AGENTS, [organizationIds])
  return toSourcesForAgents(rows)
}

const LIST_SOURCES_FOR_AGENTS: NamedStatement = {
  name: 'list-sources-for-agents',
  text: sourcesForAgentsSql('(SELECT $1::uuid[])::uuid[]'),
}

/** The source, unless it is another organization's or deleted. */
export async function findWebhookSource(
  db: Pick<Database, 'prisma'>,
  organizationId: string,
  sourceId: string,
): Promise<StoredWebhookSource | undefined> {
  const found = await db.prisma.webhookSource.findFirst({ where: { organizationId, id: sourceId, deletedAt: null } })
  return found ? fromPrisma(found) : undefined
}

/** Whether the organization has or ever had the source, or tried to save it: a deleted source's log stays readable. */
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

/** What a save of this id under this name would meet. */
export async function findSaveTarget(
  db: Pick<Database, 'prisma'>,
  organizationId: string,
  sourceId: string,
  name: string,
): Promise<SaveTarget> {
  const organization = await db.prisma.organization.findUnique({ where: { id: organizationId }, select: { id: true } })
  if (!organization) return { kind: 'no_organization' }
  const found = await db.prisma.webhookSource.findMany({
    where: { OR: [{ id: sourceId }, { organizationId, nameKey: normalizedName(name), deletedAt: null }] },
  })
  const stored = found.find((source) => source.id === sourceId)
  if (stored && (stored.organizationId !== organizationId || stored.deletedAt)) return { kind: 'id_taken' }
  if (found.some((source) => source.id !== sourceId)) return { kind: 'name_taken' }
  return stored ? { kind: 'stored', source: fromPrisma(stored) } : { kind: 'new' }
}

/**
 * Writes the source whole, in one statement, if it still is what the caller saw: `seenVersion` of the stored source, or
 * null when there was none. Raw, because it tells a clash of ids from a clash of names, and keeps the JSON text as it is.
 */
export async function saveWebhookSource(
  db: Pick<Database, 'pool'>,
  organizationId: string,
  sourceId: string,
  change: WebhookSourceChange,
  seenVersion: number | null,
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
  ]
  try {
    const saved =
      seenVersion === null
        ? await db.pool.query<SourceRow>(INSERT_SOURCE, values)
        : await db.pool.query<SourceRow>(UPDATE_SOURCE, [...values, seenVersion, change.signingSecret !== undefined])
    const [row] = saved.rows
    return row ? { kind: 'saved', source: toWebhookSource(row) } : { kind: 'changed_meanwhile' }
  } catch (error) {
    if (error instanceof DatabaseError && error.code === '23505' && error.constraint === 'webhook_sources_name') {
      return { kind: 'name_taken' }
    }
    throw error
  }
}

const INSERT_SOURCE = `
  INSERT INTO webhook_sources (organization_id, id, name, name_key, description, endpoint_url, signing_secret,
    example_request_body, verified_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, CASE WHEN $9 THEN now() END)
  ON CONFLICT (id) DO NOTHING
  RETURNING ${COLUMNS}`

const UPDATE_SOURCE = `
  UPDATE webhook_sources SET name = $3, name_key = $4, description = $5, endpoint_url = $6,
    signing_secret = CASE WHEN $11 THEN $7 ELSE signing_secret END, example_request_body = $8,
    verified_at = CASE WHEN $9 THEN now() END, updated_at = now(), version = version + 1
  WHERE organization_id = $1 AND id = $2 AND version = $10 AND deleted_at IS NULL
  RETURNING ${COLUMNS}`

/** Notes that the endpoint confirmed what is stored, unless another save came between. */
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

/** Deletes the source and its secret; the log stays. False when there is none. */
export async function deleteWebhookSource(
  db: Pick<Database, 'prisma'>,
  organizationId: string,
  sourceId: string,
): Promise<boolean> {
  const deleted = await db.prisma.webhookSource.updateMany({
    where: { organizationId, id: sourceId, deletedAt: null },
    data: { deletedAt: new Date(), signingSecret: null, version: { increment: 1 } },
  })
  return deleted.count === 1
}

/** Two names are the same when they differ only in case, in how accents are encoded, or in white space at their ends. */
export function normalizedName(name: string): string {
  return foldCase(trimWhiteSpace(name).normalize('NFC')).normalize('NFC')
}

function toWebhookSource(row: SourceRow): WebhookSource {
  return {
    id: row.id,
    organizationId: row.organization_id,
    name: row.name,
    description: row.description,
    endpointUrl: row.endpoint_url,
    hasSigningSecret: row.signing_secret !== null,
    exampleRequestBody: row.example_request_body,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    verifiedAt: row.verified_at,
  }
}

function fromPrisma(source: PrismaWebhookSource): StoredWebhookSource {
  return {
    id: source.id,
    organizationId: source.organizationId,
    name: source.name,
    description: source.description,
    endpointUrl: source.endpointUrl,
    hasSigningSecret: source.signingSecret !== null,
    exampleRequestBody: source.exampleRequestBody as Record<string, unknown>,
    createdAt: source.createdAt,
    updatedAt: source.updatedAt,
    verifiedAt: source.verifiedAt,
    signingSecret: source.signingSecret && Buffer.from(source.signingSecret),
    version: source.version,
  }
}
