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

const COLUMNS = `id, organization_id AS "organizationId", model, key`

/** The encrypted keys of the organization. */
export async function readModelKeys(db: Db, organizationId: string): Promise<readonly ModelKey[]> {
  const { rows } = await db.pool.query<ModelKey>(`SELECT ${COLUMNS} FROM model_keys WHERE organization_id = $1`, [
    organizationId,
  ])
  return rows
}

/** The keys of the organization as its admins see them, by model. */
export async function listModelKeys(db: Db, organizationId: string): Promise<ModelKeyOut[]> {
  return await queryRows<ModelKeyOut>(
    db,
    `SELECT id, model, last_characters, saved_by_name AS saved_by, saved_at,
       CASE WHEN test_requested_at IS NOT NULL THEN 'waiting' WHEN tested_at IS NULL THEN 'none'
         WHEN test_error IS NULL THEN 'passed' ELSE 'failed' END AS test,
       tested_at, CASE WHEN test_requested_at < now() - interval '1 minute'
         THEN 'No runner has tried it for a minute. The operator checks that the runners have SECRETS_KEY.'
         ELSE test_error END AS test_error
     FROM model_keys WHERE organization_id = $1 ORDER BY model COLLATE "C"`,
    [organizationId],
  )
}

/**
 * Saves the key in place of an earlier one for the model, and has a runner try it. False if no runner offers the model
 * to the organization.
 */
export async function saveModelKey(
  db: Db,
  { id, organizationId, model, key, lastCharacters }: ModelKey & { readonly lastCharacters: string },
  by: AuditedBy,
): Promise<boolean> {
  return await inTransaction(db, async (client) => {
    const { rowCount } = await client.query(
      `INSERT INTO model_keys (id, organization_id, model, key, last_characters, saved_by, saved_by_name, test_requested_at)
       SELECT $1, $2, name, $4, $5, $6, $7, now() FROM models
       WHERE name = $3 AND models.model <> 'builtin' AND (organization_ids = '{}' OR $2 = ANY (organization_ids))
       ON CONFLICT (organization_id, model) DO UPDATE SET id = excluded.id, key = excluded.key,
         last_characters = excluded.last_characters, saved_at = now(), saved_by = excluded.saved_by,
         saved_by_name = excluded.saved_by_name, test_requested_at = now(), tested_at = NULL, test_error = NULL`,
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

/** Has a runner try a key. False if there is none. */
export async function requestModelKeyTest(db: Db, id: string, by: AuditedBy): Promise<boolean> {
  const statement = `
    UPDATE model_keys SET test_requested_at = now() WHERE organization_id = $1 AND id = $2 RETURNING model AS name`
  return await changeAudited(db, statement, { ...by, action: 'model_key.tested', kind: 'model_key', id })
}

/**
 * Takes a key that is to be tried; no other runner gets it for 5 minutes, so that a test whose runner dies is repeated.
 * Undefined if there is none.
 */
export async function claimModelKeyTest(db: Db): Promise<ModelKey | undefined> {
  const { rows } = await db.pool.query<ModelKey>(
    `UPDATE model_keys SET test_requested_at = now() + interval '5 minutes' WHERE id = (
       SELECT id FROM model_keys WHERE test_requested_at <= now()
       ORDER BY test_requested_at LIMIT 1 FOR UPDATE SKIP LOCKED
     ) RETURNING ${COLUMNS}`,
  )
  return rows[0]
}

/** Records what became of a test, unless the key was replaced meanwhile. One that was requested meanwhile follows. */
export async function recordModelKeyTest(db: Db, id: string, error: string | null): Promise<void> {
  await db.pool.query(
    `UPDATE model_keys SET tested_at = now(), test_error = $2,
       test_requested_at = CASE WHEN test_requested_at <= now() THEN test_requested_at END
     WHERE id = $1`,
    [id, error],
  )
}
