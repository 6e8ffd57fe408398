import type { WorkflowDetailOut } from '@workflow-service/contract'
import { newId, type PrismaDb, type Transaction, workflowSearchText } from '../connection/index.ts'
import { assertQuota, viewerOf } from '../organizations/index.ts'
import { countFileBytes } from './files.ts'
import { editBesideWorkflow, EditRefused, editWorkflow, type WorkflowEdit } from './workflow-edits.ts'
import { writeTrigger } from './workflow-parts.ts'
import { findVersion, recordVersions, type VersionDocument } from './workflow-versions.ts'

/**
 * Gives a workflow the task, triggers and files of one of its versions, which becomes a new version unless it is the
 * same as the newest.
 * @param newest The newest version that the person knows.
 * @throws EditRefused, QuotaExceededError
 */
export async function restoreVersion(
  db: PrismaDb,
  edit: WorkflowEdit,
  { versionId, newest }: { readonly versionId: string; readonly newest: number },
): Promise<WorkflowDetailOut> {
  // A refusal keeps it: the person finds what a service of 1.0.0 saved in the history.
  await editBesideWorkflow(db, edit, async (tx) => {
    await recordVersions(tx, [edit.workflowId], null)
    return undefined
  })
  return await editWorkflow(db, edit, async (tx, before) => {
    const found = await findVersion({ pool: tx }, viewerOf(edit.principal), before.id, versionId)
    if (!found) throw new EditRefused('not_found', { what: 'Version' })
    const { rows } = await tx.query<{ number: number; isSame: boolean }>(
      `SELECT newest.number, newest.document::text = version.document::text AS "isSame"
       FROM workflow_versions AS newest, workflow_versions AS version
       WHERE newest.workflow_id = $1 AND version.id = $2 ORDER BY newest.number DESC LIMIT 1`,
      [before.id, versionId],
    )
    // Restored already: the request is repeated, or another person made the same change.
    if (rows[0]?.isSame) return undefined
    if (rows[0]?.number !== newest) throw new EditRefused('changed_meanwhile', { current: before })
    const { name, description, triggers, files } = await withFreeIds(tx, before.id, found.document)
    await tx.prisma.trigger.deleteMany({
      where: { workflowId: before.id, id: { notIn: triggers.map(({ id }) => id) } },
    })
    for (const trigger of triggers) {
      const stored = before.triggers.find(({ id }) => id === trigger.id)
      await writeTrigger(tx, before.id, trigger, stored)
    }
    await tx.query(RESTORE_FILTERS, [before.id, versionId, triggers.map(({ id }) => id)])
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

/** Gives new ids to triggers and files whose ids another workflow has got since the version, as by a manifest. */
async function withFreeIds(tx: Transaction, workflowId: string, document: VersionDocument): Promise<VersionDocument> {
  const { triggers, files } = document
  const { rows: taken } = await tx.query<{ id: string }>(
    `SELECT id FROM triggers WHERE id = ANY ($2::uuid[]) AND workflow_id <> $1
     UNION SELECT id FROM files WHERE id = ANY ($2::uuid[]) AND workflow_id <> $1`,
    [workflowId, [...triggers, ...files].map(({ id }) => id)],
  )
  const ids = new Map(taken.map(({ id }) => [id, newId()]))
  const withFreeId = <Part extends { readonly id: string }>(part: Part) => ({
    ...part,
    id: ids.get(part.id) ?? part.id,
  })
  return { ...document, triggers: triggers.map(withFreeId), files: files.map(withFreeId) }
}

// As text: numbers and names that JavaScript writes otherwise stay as they were. $3: the ids of the version's triggers.
const RESTORE_FILTERS = `
  UPDATE triggers SET filters = trigger->'filters'
  FROM workflow_versions AS version,
    json_array_elements(version.document->'triggers') WITH ORDINALITY AS restored (trigger, position)
  WHERE triggers.workflow_id = $1 AND version.workflow_id = $1 AND version.id = $2
    AND triggers.id = ($3::uuid[])[position] AND trigger->>'filters' IS NOT NULL`

const WANTED = 'json_to_recordset($2) AS wanted (id uuid, name text, path text[], sha256 text)'

// The hashes are current: the version before the change has been recorded.
const DELETE_OTHER_FILES = `
  DELETE FROM files WHERE workflow_id = $1 AND NOT EXISTS (
    SELECT FROM ${WANTED} WHERE wanted.id = files.id AND wanted.name = files.name AND wanted.path = files.path
      AND wanted.sha256 = files.sha256
  )`

// Fails if a content is missing, because null is none.
const INSERT_MISSING_FILES = `
  INSERT INTO files (id, workflow_id, name, path, content)
  SELECT wanted.id, $1, wanted.name, wanted.path, kept.content
  FROM ${WANTED} LEFT JOIN workflow_version_files AS kept ON kept.workflow_id = $1 AND kept.sha256 = wanted.sha256
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
