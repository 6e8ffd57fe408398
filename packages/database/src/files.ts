import { type Database, type NamedStatement, runStatement } from './client.ts'

/** A file of a workflow, without its content. */
export interface WorkflowFile {
  readonly id: string
  readonly name: string
  /** The folders from the top down; empty means the workflow's root. */
  readonly path: readonly string[]
}

const LIST_FILES: NamedStatement = {
  name: 'list-workflow-files',
  text: `
    SELECT file.id, file.name, file.path FROM files file
    JOIN workflows workflow ON workflow.id = file.workflow_id
    WHERE workflow.organization_id = $1 AND workflow.id = $2
    ORDER BY file.path, file.name, file.id`,
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
    SELECT file.content FROM files file
    JOIN workflows workflow ON workflow.id = file.workflow_id
    WHERE workflow.organization_id = $1 AND workflow.id = $2 AND file.id = $3`,
}

/** A file's content; undefined when the workflow has no such file. */
export async function readWorkflowFile(
  db: Pick<Database, 'pool'>,
  organizationId: string,
  workflowId: string,
  fileId: string,
): Promise<string | undefined> {
  const values = [organizationId, workflowId, fileId]
  return (await runStatement<{ content: string }>(db, READ_FILE, values)).rows[0]?.content
}
