import type { WorkflowDetailOut } from '@workflow-service/contract'
import { type PrismaDb, type Transaction, workflowSearchText } from '../connection/index.ts'
import { assertQuota, viewerOf } from '../organizations/index.ts'
import { countFileBytes, EditRefused, editWorkflow, type WorkflowEdit } from './workflow-edits.ts'
import { UPSERT_FILE, writeTrigger } from './workflow-parts.ts'
import { findVersion, readContents, type VersionDocument } from './workflow-versions.ts'

/**
 * Gives a workflow the task, triggers and files of one of its versions, which becomes a new version.
 * @param newest The newest version that the person knows.
 * @throws EditRefused, QuotaExceededError
 */
export async function restoreVersion(
  db: PrismaDb,
  edit: WorkflowEdit,
  { versionId, newest }: { readonly versionId: string; readonly newest: number },
): Promise<WorkflowDetailOut> {
  return await editWorkflow(db, edit, async (tx, before) => {
    const found = await findVersion({ pool: tx }, viewerOf(edit.principal), before.id, versionId)
    if (!found) throw new EditRefused('not_found', { what: 'Version' })
    const { rows } = await tx.query<{ number: number }>(
      'SELECT max(number) AS number FROM workflow_versions WHERE workflow_id = $1',
      [before.id],
    )
    if (rows[0]?.number !== newest) throw new EditRefused('changed_meanwhile', { current: before })
    const bytesBefore = await countFileBytes(tx, before.id)
    await writeDocument(tx, before, found.document)
    if ((await countFileBytes(tx, before.id)) > bytesBefore) await assertQuota(tx, edit, 'file_bytes')
    return { action: 'workflow.restored', changes: [{ field: 'version', old: newest, new: found.number }] }
  })
}

// The hashes are current: the version before the change has been recorded.
const DELETE_OTHER_FILES = `
  DELETE FROM files WHERE workflow_id = $1 AND NOT EXISTS (
    SELECT FROM json_to_recordset($2) AS wanted (id uuid, name text, path jsonb, sha256 text)
    WHERE wanted.id = files.id AND wanted.name = files.name AND wanted.path = to_jsonb(files.path)
      AND wanted.sha256 = files.sha256
  )`

async function writeDocument(
  tx: Transaction,
  before: WorkflowDetailOut,
  { name, description, triggers, files }: VersionDocument,
): Promise<void> {
  const { id: workflowId } = before
  await tx.prisma.workflow.update({
    where: { id: workflowId },
    data: { name, description, searchText: workflowSearchText(name, description) },
  })
  await tx.prisma.trigger.deleteMany({ where: { workflowId, id: { notIn: triggers.map(({ id }) => id) } } })
  for (const trigger of triggers) {
    await writeTrigger(
      tx,
      workflowId,
      trigger,
      before.triggers.find(({ id }) => id === trigger.id),
    )
  }
  // First all that differ: two files may have exchanged their names.
  await tx.query(DELETE_OTHER_FILES, [workflowId, JSON.stringify(files)])
  const kept = new Set(
    (await tx.prisma.file.findMany({ where: { workflowId }, select: { id: true } })).map(({ id }) => id),
  )
  const missing = files.filter(({ id }) => !kept.has(id))
  const contents = await readContents(
    { pool: tx },
    workflowId,
    missing.map(({ sha256 }) => sha256),
  )
  for (const { id, name: fileName, path, sha256 } of missing) {
    const { rowCount } = await tx.query(UPSERT_FILE, [id, workflowId, fileName, path, contents.get(sha256)])
    if (!rowCount) throw new EditRefused('id_taken', { what: 'File' })
  }
}
