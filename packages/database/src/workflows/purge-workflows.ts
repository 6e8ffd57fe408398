import { type Db, doEach, inTransaction } from '../connection/index.ts'
import { deleteRuns } from '../organizations/index.ts'

/**
 * Deletes up to `batchSize` runs, with their journals, of each of up to 100 deleted workflows, and those workflows
 * without runs. A run that was accepted while its workflow was deleted ends first. Resolves to the number of deleted
 * rows; an error of one workflow is thrown when nothing else is left to delete.
 */
export async function purgeDeletedWorkflows(db: Db, batchSize: number): Promise<number> {
  const { rows } = await db.pool.query<{ id: string }>(
    'SELECT id FROM workflows WHERE deleted_at IS NOT NULL ORDER BY deleted_at LIMIT 100',
  )
  let deleted = 0
  const ids = rows.map(({ id }) => id)
  const failure = await doEach(ids, async (id) => void (deleted += await purgeWorkflow(db, id, batchSize)))
  if (failure && deleted === 0) throw failure
  return deleted
}

async function purgeWorkflow(db: Db, id: string, batchSize: number): Promise<number> {
  return await inTransaction(db, async (client) => {
    const locked = await client.query(
      'SELECT FROM workflows WHERE id = $1 AND deleted_at IS NOT NULL FOR UPDATE SKIP LOCKED',
      [id],
    )
    if (!locked.rowCount) return 0
    const where = 'workflow_id = $2 AND finished_at IS NOT NULL ORDER BY created_at DESC, id DESC'
    const runs = await deleteRuns({ pool: client }, where, batchSize, id)
    const emptied = await client.query(
      'DELETE FROM workflows WHERE id = $1 AND (SELECT true FROM starts WHERE workflow_id = $1 LIMIT 1) IS NULL',
      [id],
    )
    return runs + (emptied.rowCount ?? 0)
  })
}
