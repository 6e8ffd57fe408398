import { type Database, type NamedStatement, runStatement } from './client.ts'

/** A file of a workflow, without its content. */
export interface WorkflowFile {
  readonly id: string
  readonly name: string
  /** The folders from the top down; empty for the root. */
  readonly path: readonly string[]
}

const LIST_FILES: NamedStatement = {
  name: 'list-workflow-files',
  text: `
    SELECT files.id, files.name, files.path
    FROM files JOIN workflows ON workflows.id = files.workflow_id
    WHERE workflows.organization_id = $1 AND workflows.id = $2
    ORDER BY files.path, files.name, files.id`,
}

/** The files of a workflow, sorted by folder, then by name, in code point order. */
export async function listWorkflowFiles(
  db: Pick<Database, 'pool'>,
  organizationId: string,
  workflowId: string,
): Promise<readonly WorkflowFile[]> {
  return (await runStatement<WorkflowFile>(db, LIST_FILES, [organizationId, workflowId])).rows
}

const READ_FILE: NamedStatement = {
  name: 'read-workflow-file',
  text: `
    SELECT files.content
    FROM files JOIN workflows ON workflows.id = files.workflow_id
    WHERE workflows.organization_id = $1 AND workflows.id = $2 AND files.id = $3`,
}

/** The content of a file; undefined when the workflow has no such file. */
export async function readWorkflowFile(
  db: Pick<Database, 'pool'>,
  organizationId: string,
  workflowId: string,
  fileId: string,
): Promise<string | undefined> {
  const { rows } = await runStatement<{ content: string }>(db, READ_FILE, [organizationId, workflowId, fileId])
  return rows[0]?.content
}
