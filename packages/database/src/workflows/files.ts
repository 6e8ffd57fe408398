import { RULES_FILE_NAME, RULES_MAX_BYTES } from '@workflow-service/contract'
import { type Db, type NamedStatement, runStatement } from '../connection/index.ts'

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
  db: Db,
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

/** What the built-in agent reads of a workflow before it plans a run. */
export interface WorkflowTexts {
  readonly id: string
  readonly name: string
  readonly description: string
  /** The `rules.yaml`; null if it has none. Of one that is larger than RULES_MAX_BYTES, the beginning that shows it. */
  readonly rules: string | null
}

const READ_WORKFLOW_TEXTS: NamedStatement = {
  name: 'read-workflow-texts',
  text: `
    SELECT workflow.id, workflow.name, workflow.description, left(file.content, ${RULES_MAX_BYTES + 1}) AS rules
    FROM workflows AS workflow
    LEFT JOIN files AS file ON file.workflow_id = workflow.id AND file.path = '{}' AND file.name = '${RULES_FILE_NAME}'
    WHERE workflow.organization_id = $1 AND workflow.id = ANY ($2::uuid[]) AND workflow.deleted_at IS NULL
    ORDER BY workflow.name, workflow.id`,
}

/** The texts of those of the workflows that exist, by name. */
export async function readWorkflowTexts(
  db: Db,
  organizationId: string,
  workflowIds: readonly string[],
): Promise<readonly WorkflowTexts[]> {
  return (await runStatement<WorkflowTexts>(db, READ_WORKFLOW_TEXTS, [organizationId, workflowIds])).rows
}

/** The content of a file; undefined when the workflow has no such file. */
export async function readWorkflowFile(
  db: Db,
  organizationId: string,
  workflowId: string,
  fileId: string,
): Promise<string | undefined> {
  const { rows } = await runStatement<{ content: string }>(db, READ_FILE, [organizationId, workflowId, fileId])
  return rows[0]?.content
}
