import type { ModelKeyOut } from '@workflow-service/contract'
import { type Db, inTransaction, queryRows } from '../connection/index.ts'
import { type AuditedBy, changeAudited, recordAuditEvent } from '../organizations/index.ts'

/** A key of an organization's own for a model. */
export interface ModelKey {
  readonly id: string
  readonly organizationId: string
  readonly model: string
  /** Encrypted for the organization and the id. */
  readonly key: Buffer
}

/** The encrypted keys of the organization. */
export async function readModelKeys(db: Db, organizationId: string): Promise<readonly ModelKey[]> {
  return await queryRows<ModelKey>(
    db,
    'SELECT id, organization_id AS "organizationId", model, key FROM model_keys WHERE organization_id = $1',
    [organizationId],
  )
}

/** The keys of the organization as its admins see them, by model. */
export async function listModelKeys(db: Db, organizationId: string): Promise<ModelKeyOut[]> {
  return await queryRows<ModelKeyOut>(
    db,
    `SELECT id, model, last_characters, saved_by_name AS saved_by, saved_at
     FROM model_keys WHERE organization_id = $1 ORDER BY model COLLATE "C"`,
    [organizationId],
  )
}

/**
 * Saves the key in place of an earlier one for the model. False if no runner offers the model to the organization.
 */
export async function saveModelKey(
  db: Db,
  { id, organizationId, model, key, lastCharacters }: ModelKey & { readonly lastCharacters: string },
  by: AuditedBy,
): Promise<boolean> {
  return await inTransaction(db, async (client) => {
    const { rowCount } = await client.query(
      `INSERT INTO model_keys (id, organization_id, model, key, last_characters, saved_by, saved_by_name)
       SELECT $1, $2, name, $4, $5, $6, $7 FROM models
       WHERE name = $3 AND models.model <> 'builtin' AND (organization_ids = '{}' OR $2 = ANY (organization_ids))
       ON CONFLICT (organization_id, model) DO UPDATE SET id = excluded.id, key = excluded.key,
         last_characters = excluded.last_characters, saved_at = now(), saved_by = excluded.saved_by,
         saved_by_name = excluded.saved_by_name`,
      [id, organizationId, model, key, lastCharacters, by.principal.userId, by.principal.name],
    )
    if (rowCount !== 1) return false
    await recordAuditEvent(client, { ...by, action: 'model_key.saved', target: { kind: 'model_key', id, name: model } })
    return true
  })
}

/** Deletes a key. False if there is none. */
export async function deleteModelKey(db: Db, id: string, by: AuditedBy): Promise<boolean> {
  const statement = 'DELETE FROM model_keys WHERE organization_id = $1 AND id = $2 RETURNING model AS name'
  return await changeAudited(db, statement, { ...by, action: 'model_key.deleted', kind: 'model_key', id })
}
