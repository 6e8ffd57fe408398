import { INSTRUCTION_VERSIONS_MAX, type InstructionsOut, type InstructionVersionOut } from '@workflow-service/contract'
import { formatSystemText } from '@workflow-service/contract/system-text'
import { type Db, inTransaction, type Queryable, queryRows } from '../connection/index.ts'
import { type AuditedBy, recordAuditEvent } from './audit-events.ts'

/** What an organization adds to the system text of agents with a model. */
export interface Instructions {
  /** The version, from 1. */
  readonly number: number
  readonly text: string
}

/** The version of this number, or the newest one. Undefined if there are none, or no longer that version. */
export async function readInstructions(db: Db, organizationId: string, number?: number) {
  const found = await readVersion(db.pool, organizationId, number)
  return found?.text === '' ? undefined : found
}

/** As `readInstructions`; a version that removed the text has an empty one. */
export async function readVersion(client: Queryable, organizationId: string, number?: number) {
  const { rows } = await client.query<Instructions>(
    `SELECT number, text FROM instructions WHERE organization_id = $1 AND ($2::integer IS NULL OR number = $2)
     ORDER BY number DESC LIMIT 1`,
    [organizationId, number],
  )
  return rows[0]
}

/** The system text with the organization's instructions, and the versions that are kept, newest first. */
export async function describeInstructions(db: Db, organizationId: string): Promise<InstructionsOut> {
  const versions = await queryRows<InstructionVersionOut>(
    db,
    `SELECT number, text, saved_by_name AS saved_by, saved_at
     FROM instructions WHERE organization_id = $1 ORDER BY number DESC LIMIT ${INSTRUCTION_VERSIONS_MAX}`,
    [organizationId],
  )
  const { text, number } = versions[0] ?? { text: '', number: 0 }
  const system_text = formatSystemText({ name: 'NAME', description: 'DESCRIPTION', instructions: text })
  return { text, version: String(number), system_text, versions }
}

/** Saves a version, unless the newest one is another than the person has seen; `0`: none. */
export async function saveInstructions(
  db: Db,
  { text, version }: { readonly text: string; readonly version: string },
  by: AuditedBy,
): Promise<'saved' | 'changed_meanwhile'> {
  const { organizationId } = by.principal
  return await inTransaction(db, async (client) => {
    const { rows } = await client.query<{ name: string }>(
      'SELECT name FROM organizations WHERE id = $1 FOR NO KEY UPDATE',
      [organizationId],
    )
    const stored = await readVersion(client, organizationId)
    if ((stored?.text ?? '') === text) return 'saved'
    if (String(stored?.number ?? 0) !== version) return 'changed_meanwhile'
    await writeInstructions(client, text, by.principal)
    await recordAuditEvent(client, {
      ...by,
      action: 'instructions.saved',
      target: { kind: 'organization', id: organizationId, name: rows[0]?.name ?? null },
      changes: [{ field: 'instructions', old: stored?.text ?? '', new: text }],
    })
    return 'saved'
  })
}

/** Adds a version. The oldest ones beyond INSTRUCTION_VERSIONS_MAX are deleted. */
export async function writeInstructions(
  client: Queryable,
  text: string,
  { organizationId, userId, name }: Pick<AuditedBy['principal'], 'organizationId' | 'userId' | 'name'>,
): Promise<void> {
  await client.query(
    `WITH added AS (
       INSERT INTO instructions (organization_id, number, text, saved_by, saved_by_name)
       SELECT $1, coalesce(max(number), 0) + 1, $2, $3, $4 FROM instructions WHERE organization_id = $1
       RETURNING number
     )
     DELETE FROM instructions
     WHERE organization_id = $1 AND number <= (SELECT number FROM added) - ${INSTRUCTION_VERSIONS_MAX}`,
    [organizationId, text, userId, name],
  )
}
