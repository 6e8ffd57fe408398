import type { LookupIn, LookupOut } from '@workflow-service/contract'
import { type Db, inTransaction, kindOfViolation, queryRows } from '../connection/index.ts'
import {
  assertQuota,
  type AuditedBy,
  changeAudited,
  changedFields,
  recordAuditEvent,
  secretChanges,
} from '../organizations/index.ts'
import { normalizedName, type SaveRefusal } from './source-edits.ts'

/** A look-up with the value of its header, encrypted; null when there is none. Only the dispatcher decrypts it. */
export interface StoredLookup {
  readonly lookup: LookupOut
  readonly headerValue: Buffer | null
}

/** What an agent may know of a look-up. */
export type LookupForAgent = Pick<LookupOut, 'id' | 'name' | 'tools'>

/**
 * The values that a save writes, in place of those of `version` (0: there were none). `headerValue` is encrypted: null
 * removes it; undefined keeps the stored one.
 */
export interface LookupChange extends Omit<LookupIn, 'header_value'> {
  headerValue: Buffer | null | undefined
  version: number
}

export type SaveLookupResult =
  | { kind: 'saved'; lookup: LookupOut }
  /** Another save or a deletion came first. */
  | { kind: 'changed_meanwhile' | SaveRefusal }

const LOOKUP_COLUMNS = `id, organization_id, name, kind, url, header_name, header_value IS NOT NULL AS has_header_value,
  tools, created_at, updated_at, version`

/** The organization's look-ups, sorted by name in code point order; or only the one of this id. */
export async function listLookups(db: Db, organizationId: string, lookupId?: string): Promise<LookupOut[]> {
  return await queryRows<LookupOut>(
    db,
    `SELECT ${LOOKUP_COLUMNS} FROM lookups WHERE organization_id = $1 AND ($2::uuid IS NULL OR id = $2)
     ORDER BY name COLLATE "C", id`,
    [organizationId, lookupId ?? null],
  )
}

export async function findStoredLookup(
  db: Db,
  organizationId: string,
  lookupId: string,
): Promise<StoredLookup | undefined> {
  const [row] = await queryRows<LookupOut & Pick<StoredLookup, 'headerValue'>>(
    db,
    `SELECT ${LOOKUP_COLUMNS}, header_value AS "headerValue" FROM lookups WHERE organization_id = $1 AND id = $2`,
    [organizationId, lookupId],
  )
  if (!row) return undefined
  const { headerValue, ...lookup } = row
  return { lookup, headerValue }
}

/** The organization's look-ups without what only the dispatcher may know. */
export async function listLookupsForAgent(db: Db, organizationId: string): Promise<readonly LookupForAgent[]> {
  return (await listLookups(db, organizationId)).map(({ id, name, tools }) => ({ id, name, tools }))
}

/**
 * Saves the look-up, if its version is still that of the change. Records an audit event if it is known who saves.
 * @throws QuotaExceededError
 */
export async function saveLookup(
  db: Db,
  organizationId: string,
  lookupId: string,
  change: LookupChange,
  by?: AuditedBy,
): Promise<SaveLookupResult> {
  const { name, kind, url, header_name: headerName = null, headerValue, tools, version } = change
  const where = [organizationId, lookupId]
  const values = [
    ...where,
    name,
    normalizedName(name),
    kind,
    url,
    headerName,
    headerValue ?? null,
    JSON.stringify(tools),
  ]
  try {
    return await inTransaction(db, async (client) => {
      const on = { pool: client }
      const stored = `SELECT ${LOOKUP_COLUMNS} FROM lookups WHERE organization_id = $1 AND id = $2 FOR UPDATE`
      const [seen] = await queryRows<LookupOut>(on, stored, where)
      if ((seen?.version ?? 0) !== version) return { kind: 'changed_meanwhile' }
      if (!seen) {
        // It may have been deleted while a server listed its tools. A deletion that begins meanwhile waits.
        const live = 'SELECT FROM organizations WHERE id = $1 AND deleted_at IS NULL FOR SHARE'
        if ((await client.query(live, [organizationId])).rowCount === 0) return { kind: 'no_organization' }
      }
      const [lookup] = seen
        ? await queryRows<LookupOut>(
            on,
            `UPDATE lookups SET name = $3, name_key = $4, kind = $5, url = $6, header_name = $7,
               header_value = CASE WHEN $10 THEN $8 ELSE header_value END, tools = $9, version = version + 1,
               updated_at = now()
             WHERE organization_id = $1 AND id = $2 RETURNING ${LOOKUP_COLUMNS}`,
            [...values, headerValue !== undefined],
          )
        : await queryRows<LookupOut>(
            on,
            `INSERT INTO lookups (organization_id, id, name, name_key, kind, url, header_name, header_value, tools)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (id) DO NOTHING RETURNING ${LOOKUP_COLUMNS}`,
            values,
          )
      if (!lookup) return { kind: 'id_taken' }
      if (!seen && by) await assertQuota(client, by, 'lookups')
      const isLarger = !seen || bytesOf(tools) > bytesOf(seen.tools)
      if (isLarger && by) await assertQuota(client, by, 'lookup_bytes')
      if (by) {
        await recordAuditEvent(client, {
          ...by,
          action: 'lookup.saved',
          target: { kind: 'lookup', id: lookupId, name },
          changes: [
            ...changedFields(seen ? auditedValues(seen) : {}, auditedValues(lookup)),
            ...secretChanges('header_value', headerValue),
          ],
        })
      }
      return { kind: 'saved', lookup }
    })
  } catch (error) {
    return kindOfViolation(error, { lookups_name: 'name_taken', lookups_organization_id_fkey: 'no_organization' })
  }
}

function auditedValues({ name, kind, url, header_name, tools }: LookupOut): object {
  return { name, kind, url, header_name, tools: JSON.stringify(tools) }
}

/** Deletes the look-up with the value of its header. False when there is none. */
export async function deleteLookup(db: Db, id: string, by: AuditedBy): Promise<boolean> {
  const statement = 'DELETE FROM lookups WHERE organization_id = $1 AND id = $2 RETURNING name'
  return await changeAudited(db, statement, { ...by, action: 'lookup.deleted', kind: 'lookup', id })
}

function bytesOf(tools: LookupOut['tools']): number {
  return Buffer.byteLength(JSON.stringify(tools))
}
