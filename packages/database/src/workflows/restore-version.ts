import type { WorkflowDetailOut } from '@workflow-service/contract'
import { type PrismaDb, type Transaction, workflowSearchText } from '../connection/index.ts'
import { assertQuota, viewerOf } from '../organizations/index.ts'
import { countFileBytes, EditRefused, editWorkflow, type WorkflowEdit } from './workflow-edits.ts'
import { writeTrigger } from './workflow-parts.ts'
import { findVersion, type VersionDocument } from './workflow-versions.ts'

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
    const { name, description, triggers, files } = found.document
    await tx.prisma.trigger.deleteMany({
      where: { workflowId: before.id, id: { notIn: triggers.map(({ id }) => id) } },
    })
    for (const trigger of triggers) {
      const stored = before.triggers.find(({ id }) => id === trigger.id)
      await writeTrigger(tx, before.id, trigger, stored)
    }
    const bytesBefore = await countFileBytes(tx, before.id)
    await writeFiles(tx, before.id, files)
    if ((await countFileBytes(tx, before.id)) > bytesBefore) await assertQuota(tx, edit, 'file_bytes')
    return {
      action: 'workflow.restored',
      changes: [{ field: 'version', old: newest, new: found.number }],
      data: { name, description, searchText: workflowSearchText(name, description) },
    }
  })
}

const WANTED = 'json_to_recordset($2) AS wanted (id uuid, name text, path text[], sha256 text)'

// The hashes are current: the version before the change has been recorded.
const DELETE_OTHER_FILES = `
  DELETE FROM files WHERE workflow_id = $1 AND NOT EXISTS (
    SELECT FROM ${WANTED} WHERE wanted.id = files.id AND wanted.name = files.name AND wanted.path = files.path
      AND wanted.sha256 = files.sha256
  )`

const INSERT_MISSING_FILES = `
  INSERT INTO files (id, workflow_id, name, path, content)
  SELECT wanted.id, $1, wanted.name, wanted.path, kept.content
  FROM ${WANTED} JOIN workflow_version_files AS kept ON kept.workflow_id = $1 AND kept.sha256 = wanted.sha256
  WHERE NOT EXISTS (SELECT FROM files WHERE files.workflow_id = $1 AND files.id = wanted.id)
  ON CONFLICT (id) DO NOTHING`

/** @throws EditRefused `id_taken` if another workflow has the id of a file. */
async function writeFiles(tx: Transaction, workflowId: string, files: VersionDocument['files']): Promise<void> {
  const values = [workflowId, JSON.stringify(files)]
  // First all that differ: two files may have exchanged their names.
  await tx.query(DELETE_OTHER_FILES, values)
  await tx.query(INSERT_MISSING_FILES, values)
  const count = await tx.prisma.file.count({ where: { workflowId } })
  if (count !== files.length) throw new EditRefused('id_taken', { what: 'File' })
}
