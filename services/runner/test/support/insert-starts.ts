import { type Database, newId } from '@workflow-service/database'

/** Inserts an organization with starts that wait, each in a session of its own with the same id. */
export async function insertStarts(
  { pool }: Database,
  count: number,
): Promise<{ organizationId: string; ids: string[] }> {
  const [organizationId, workflowId] = [newId(), newId()]
  const ids = Array.from({ length: count }, () => newId())
  await pool.query(`INSERT INTO organizations (id, name) VALUES ($1, 'Acme')`, [organizationId])
  await pool.query(
    `INSERT INTO workflows (id, organization_id, name, description, scope, search_text, is_active)
     VALUES ($1, $2, 'w', '', 'company_wide', 'w', true)`,
    [workflowId, organizationId],
  )
  await pool.query(
    `INSERT INTO sessions (id, organization_id, last_start_number, waiting_since)
     SELECT id, $2, 1, now() FROM unnest($1::uuid[]) AS id`,
    [ids, organizationId],
  )
  await pool.query(
    `INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id)
     SELECT id, $2, $3, id, 1, 'api', 'go', 'r' FROM unnest($1::uuid[]) AS id`,
    [ids, organizationId, workflowId],
  )
  return { organizationId, ids }
}
