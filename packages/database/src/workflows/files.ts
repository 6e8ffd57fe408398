import { RULES_FILE_NAME, RULES_MAX_BYTES } from '@workflow-service/contract'
import { column, type Db, runStatement, statement } from '../connection/index.ts'

/** A file of a workflow, without its content. */
export interface WorkflowFile {
  readonly id: string
  readonly name: string
  /** The folders from the top down; empty for the root. */
  readonly path: readonly string[]
}

const LIST_FILES = statement('workflows/list-workflow-files', {
  id: column.uuid,
  name: column.text(),
  path: column.textArray(),
})

/** The files of a workflow, sorted by folder, then by name, in code point order. */
export async function listWorkflowFiles(
  db: Db,
  organizationId: string,
  workflowId: string,
): Promise<readonly WorkflowFile[]> {
  return (await runStatement(db, LIST_FILES, [organizationId, workflowId])).rows
}

const READ_FILE = statement('workflows/read-workflow-file', { content: column.text() })

/** What the built-in agent reads of a workflow before it plans a run. */
export interface WorkflowTexts {
  readonly id: string
  readonly name: string
  readonly description: string
  /** The `rules.yaml`; null if it has none. Of one that is larger than RULES_MAX_BYTES, the beginning that shows it. */
  readonly rules: string | null
}

const READ_WORKFLOW_TEXTS = statement(
  'workflows/read-workflow-texts',
  { id: column.uuid, name: column.text(), description: column.text(), rules: column.text().orNull },
  { RULES_FILE_NAME, RULES_READ_LENGTH: RULES_MAX_BYTES + 1 },
)

/** The texts of those of the workflows that exist, by name. */
export async function readWorkflowTexts(
  db: Db,
  organizationId: string,
  workflowIds: readonly string[],
): Promise<readonly WorkflowTexts[]> {
  return (await runStatement(db, READ_WORKFLOW_TEXTS, [organizationId, workflowIds])).rows
}

/** The content of a file; undefined when the workflow has no such file. */
export async function readWorkflowFile(
  db: Db,
  organizationId: string,
  workflowId: string,
  fileId: string,
): Promise<string | undefined> {
  const { rows } = await runStatement(db, READ_FILE, [organizationId, workflowId, fileId])
  return rows[0]?.content
}
