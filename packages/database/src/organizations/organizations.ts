import { setTimeout as sleep } from 'node:timers/promises'
import type { AppOrganizationOut, SaveOrganizationIn } from '@workflow-service/contract'
import {
  type Database,
  type Db,
  deleteRows,
  deriveId,
  doEach,
  inPrismaTransaction,
  inTransaction,
  newId,
  NIL_UUID,
  type PrismaDb,
  queryRows,
  versionOf,
} from '../connection/index.ts'
import { actorOf, type AuditedBy, changedFields, OPERATOR, recordAuditEvent } from './audit-events.ts'
import { deleteRuns } from './delete-runs.ts'
import { assertRole } from './roles.ts'

/** An organization in a list for an operator to choose from. */
export interface OrganizationName {
  id: string
  name: string
  isSuspended: boolean
}

/** The first organizations by name, or those with this id or name, for an operator to choose from. */
export async function listOrganizations(
  db: PrismaDb,
  { limit, ...wanted }: { readonly limit: number; readonly id?: string; readonly name?: string },
): Promise<OrganizationName[]> {
  return await db.prisma.organization.findMany({
    where: { ...wanted, deletedAt: null },
    orderBy: [{ name: 'asc' }, { id: 'asc' }],
    take: limit,
    select: { id: true, name: true, isSuspended: true },
  })
}

/** The names of these workflows, by id. */
export async function findWorkflowNames(db: PrismaDb, organizationId: string, workflowIds: readonly string[]) {
  const found = await db.prisma.workflow.findMany({
    where: { organizationId, id: { in: [...new Set(workflowIds)] } },
    select: { id: true, name: true },
  })
  return new Map(found.map(({ id, name }) => [id, name]))
}

interface OrganizationValues {
  readonly name: string
  readonly month_budget: number | null
  readonly offered_models: readonly string[]
}

function organizationVersion({ name, month_budget, offered_models }: OrganizationValues): string {
  return versionOf([name, month_budget, offered_models])
}

/** SQL for the currency of the models' prices; null without prices. */
export const CURRENCY = '(SELECT currency FROM models WHERE currency IS NOT NULL ORDER BY name LIMIT 1)'

const READ_ORGANIZATION = `
  SELECT id, name, is_suspended, created_at, month_budget::float8 AS month_budget, offered_models,
    coalesce((
      SELECT spent FROM model_spending WHERE organization_id = $1 AND workflow_id = '${NIL_UUID}'
        AND period = date_trunc('month', now() AT TIME ZONE 'UTC')::date
    ), 0)::float8 AS month_spent,
    ${CURRENCY} AS currency
  FROM organizations WHERE id = $1 AND deleted_at IS NULL`

/** The organization, as its people see it. */
export async function readOrganization(db: Db, id: string): Promise<AppOrganizationOut | undefined> {
  const [found] = await queryRows<Omit<AppOrganizationOut, 'version'>>(db, READ_ORGANIZATION, [id])
  return found && { ...found, version: organizationVersion(found) }
}

/** Saves what is given of an organization, unless it was saved since `version` was read. */
export async function saveOrganization(
  db: Database,
  { version, ...given }: SaveOrganizationIn,
  by: AuditedBy,
): Promise<'saved' | 'changed_meanwhile'> {
  const { organizationId: id } = by.principal
  return await inPrismaTransaction(db, async (tx) => {
    const { rows } = await tx.query<OrganizationValues>(
      `SELECT name, month_budget::float8 AS month_budget, offered_models FROM organizations
       WHERE id = $1 AND deleted_at IS NULL FOR NO KEY UPDATE`,
      [id],
    )
    const [old] = rows
    if (!old) return 'changed_meanwhile'
    const { name, month_budget: monthBudget, offered_models: offeredModels } = { ...old, ...given }
    const values = { name, month_budget: monthBudget, offered_models: [...offeredModels] }
    if (organizationVersion(values) === organizationVersion(old)) return 'saved'
    if (organizationVersion(old) !== version) return 'changed_meanwhile'
    const data = { name, monthBudget, offeredModels: values.offered_models, updatedAt: new Date() }
    await tx.prisma.organization.update({ where: { id }, data })
    const target = { kind: 'organization', id, name }
    const changes = changedFields<object>(old, values)
    await recordAuditEvent(tx, { ...by, action: 'organization.saved', target, changes })
    return 'saved'
  })
}

/**
 * Creates an organization as the operator. Its id is derived from the name, as in a manifest, unless another
 * organization has it.
 */
export async function createOrganization(db: Database, name: string): Promise<OrganizationName> {
  return await inTransaction(db, async (client) => {
    for (const id of [deriveId('organization', name), newId()]) {
      const { rowCount } = await client.query(INSERT_ORGANIZATION, [id, name])
      if (rowCount === 0) continue
      const target = { kind: 'organization', id, name }
      await recordAuditEvent(client, { actor: OPERATOR, organizationId: id, action: 'organization.created', target })
      return { id, name, isSuspended: false }
    }
    throw new Error('A new id is taken')
  })
}

// By hand, since Prisma's upsert has no condition: the row of a deleted organization stays; once its data is deleted,
// it can be used again.
const INSERT_ORGANIZATION = `
  INSERT INTO organizations (id, name) VALUES ($1, $2)
  ON CONFLICT (id) DO UPDATE SET name = $2, is_suspended = false, deleted_at = NULL, purged_at = NULL,
    month_budget = NULL, offered_models = '{}', created_at = now(), updated_at = now()
  WHERE organizations.purged_at IS NOT NULL`

/** Suspends an organization, or ends that, as the operator. Returns whether that changed anything. */
export async function setOrganizationSuspended(db: PrismaDb, id: string, isSuspended: boolean): Promise<boolean> {
  return await inPrismaTransaction(db, async (tx) => {
    const [saved] = await tx.prisma.organization.updateManyAndReturn({
      where: { id, isSuspended: !isSuspended, deletedAt: null },
      data: { isSuspended, updatedAt: new Date() },
    })
    if (!saved) return false
    await recordAuditEvent(tx, {
      actor: OPERATOR,
      organizationId: id,
      action: 'organization.saved',
      target: { kind: 'organization', id, name: saved.name },
      changes: [{ field: 'suspended', old: !isSuspended, new: isSuspended }],
    })
    return true
  })
}

/** Whether the organization exists and is suspended. */
export async function isOrganizationSuspended(db: Db, id: string): Promise<boolean> {
  return (await db.pool.query('SELECT FROM organizations WHERE id = $1 AND is_suspended', [id])).rowCount === 1
}

/**
 * Hides and suspends an organization at once: no sign-in, no API key, no run and no delivery of it works any more.
 * `deleteOrganizationRows` then deletes its rows.
 */
export async function deleteOrganization(db: PrismaDb, { principal, requestId }: AuditedBy): Promise<void> {
  const { organizationId: id } = principal
  const now = new Date()
  await inPrismaTransaction(db, async (tx) => {
    const { organization, signIn, oneTimeLink, apiKey } = tx.prisma
    const [deleted] = await organization.updateManyAndReturn({
      where: { id, deletedAt: null },
      data: { isSuspended: true, deletedAt: now },
    })
    if (!deleted) return
    await assertRole(tx, principal)
    await signIn.deleteMany({ where: { organizationId: id } })
    await oneTimeLink.deleteMany({ where: { organizationId: id } })
    await apiKey.updateMany({ where: { organizationId: id, revokedAt: null }, data: { revokedAt: now } })
    // Of no organization: the audit log of the organization is deleted with it.
    await recordAuditEvent(tx, {
      actor: actorOf(principal),
      organizationId: null,
      address: principal.address,
      action: 'organization.deleted',
      target: { kind: 'organization', id, name: deleted.name },
      requestId,
    })
  })
}

/**
 * Rows of a batch by table, in this order: what belongs to a row is deleted before it, or with it in small numbers.
 * Without a condition, those of the organization.
 */
const DELETED_ROWS: readonly (readonly [table: string, batch: number, where?: string])[] = [
  ['starts', 200],
  // By API key and by source, which have an index.
  ['idempotency_keys', 1_000, 'api_key_id = ANY (ARRAY(SELECT id FROM api_keys WHERE organization_id = $2))'],
  ['deliveries', 1_000, 'source_id = ANY (ARRAY(SELECT id FROM webhook_sources WHERE organization_id = $2))'],
  ['resend_jobs', 200],
  ['search_chunks', 1_000],
  ['notices', 1_000],
  ['notice_webhooks', 1],
  ['sessions', 1_000],
  ['workflows', 20],
  ['webhook_sources', 200],
  ['lookups', 200],
  ['instructions', 200],
  ['model_keys', 200],
  ['usage_hours', 1_000],
  ['model_reservations', 1_000],
  ['model_spending', 1_000],
  ['model_waits', 1_000],
  ['audit_events', 1_000],
  // Of sources that were never saved. Their index has the verifications of all organizations, so they come last.
  ['deliveries', 1_000, `kind = 'verification' AND organization_id = $2`],
]

// Another process may have ended the deletion meanwhile, and the organization been made anew.
const LOCK_DELETED = `
  SELECT FROM organizations WHERE id = $1 AND deleted_at IS NOT NULL AND purged_at IS NULL FOR NO KEY UPDATE`

// Before: who joins another organization has the account locked, and DELETE_PEOPLE sees it then.
const LOCK_ACCOUNTS = `
  SELECT FROM accounts WHERE id IN (SELECT account_id FROM users WHERE organization_id = $1)
  ORDER BY id FOR NO KEY UPDATE`

// The users are still there for the rest of the statement. A key may have been made while the organization was deleted.
const DELETE_PEOPLE = `
  WITH deleted AS (
    DELETE FROM users WHERE organization_id = $1 RETURNING account_id
  ),
  deleted_accounts AS (
    DELETE FROM accounts WHERE id IN (SELECT account_id FROM deleted)
      AND NOT EXISTS (SELECT FROM users WHERE account_id = accounts.id AND organization_id <> $1)
  ),
  renamed_keys AS (
    UPDATE api_keys SET name = id::text, revoked_at = coalesce(revoked_at, now()) WHERE organization_id = $1
  )
  UPDATE organizations SET name = 'Deleted', purged_at = now() WHERE id = $1`

/**
 * Deleted organizations that are tried in one call, in a random order: rows that are locked, or cannot be deleted,
 * do not hold up those of the others, however many organizations have such rows.
 */
const MAX_TRIED = 20
const LOCKED_PAUSE_MS = 100

/**
 * Deletes a batch of rows of a deleted organization, or of that with the id, and at last its users and the accounts
 * that only it had. Returns whether there may be more; if other transactions have locked all rows that are left, after
 * a pause. Several processes may call it at the same time.
 *
 * The row of the organization stays: the trigger of its deletion would search all deliveries. Those of its keys stay
 * without their names: API keys are never deleted.
 */
export async function deleteOrganizationRows(db: Database, organizationId?: string): Promise<boolean> {
  const { rows } = await db.pool.query<{ id: string }>(
    `SELECT id FROM organizations WHERE deleted_at IS NOT NULL AND purged_at IS NULL AND ($2::uuid IS NULL OR id = $2)
     ORDER BY random() LIMIT $1`,
    [MAX_TRIED, organizationId],
  )
  if (rows.length === 0) return false
  let isDeleted = false
  const ids = rows.map(({ id }) => id)
  const failure = await doEach(ids, async (id) => void (isDeleted ||= await deleteRowsOf(db, id)))
  if (isDeleted) return true
  if (failure) throw failure
  await sleep(LOCKED_PAUSE_MS)
  return true
}

/** Whether something was deleted: rows that another transaction has locked, and those after them, are left. */
async function deleteRowsOf(db: Database, organizationId: string): Promise<boolean> {
  for (const [table, batch, where = 'organization_id = $2'] of DELETED_ROWS) {
    const deleted =
      table === 'starts'
        ? await deleteRuns(db, where, batch, organizationId)
        : await deleteRows(db, { table, key: 'ctid', where }, batch, organizationId)
    if (deleted > 0) return true
    const left = await db.pool.query(`SELECT FROM ${table} WHERE ${where} LIMIT $1`, [1, organizationId])
    if (left.rowCount !== 0) return false
  }
  await inTransaction(db, async (client) => {
    const { rowCount } = await client.query(LOCK_DELETED, [organizationId])
    if (rowCount === 0) return
    await client.query(LOCK_ACCOUNTS, [organizationId])
    await client.query(DELETE_PEOPLE, [organizationId])
  })
  return true
}
