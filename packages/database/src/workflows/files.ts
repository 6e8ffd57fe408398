import { RULES_FILE_NAME, RULES_MAX_BYTES } from '@workflow-service/contract'
import { column, type Db, type RowOfStatement, runStatement, statement, type Transaction } from '../connection/index.ts'
import { IS_BUILTIN } from './models.ts'

const LIST_FILES = statement('workflows/list-workflow-files', {
  id: column.uuid,
  name: column.text(),
  /** The folders from the top down; empty for the root. */
  path: column.textArray(),
})
/** A file of a workflow, without its content. */
export type WorkflowFile = RowOfStatement<typeof LIST_FILES>

/** The files of a workflow, sorted by folder, then by name, in code point order. */
export async function listWorkflowFiles(db: Db, organizationId: string, workflowId: string) {
  return (await runStatement(db, LIST_FILES, [organizationId, workflowId])).rows
}

const READ_FILE = statement('workflows/read-workflow-file', { content: column.text() })

const READ_WORKFLOW_TEXTS = statement(
  'workflows/read-workflow-texts',
  {
    id: column.uuid,
    name: column.text(),
    description: column.text(),
    /** The `rules.yaml`; null if it has none. Of one larger than RULES_MAX_BYTES, the beginning that shows it. */
    rules: column.text().orNull,
    /** Whether the built-in agent executes its runs. */
    is_builtin: column.boolean,
    /** That of the trigger that the API fires; empty without one. */
    input_message: column.text(),
  },
  { IS_BUILTIN, RULES_FILE_NAME, RULES_READ_LENGTH: RULES_MAX_BYTES + 1 },
)

export type WorkflowTexts = RowOfStatement<typeof READ_WORKFLOW_TEXTS>

/** What the built-in agent reads of those of the workflows that exist before it plans a run, by name. */
export async function readWorkflowTexts(db: Db, organizationId: string, workflowIds: readonly string[]) {
  return (await runStatement(db, READ_WORKFLOW_TEXTS, [organizationId, workflowIds])).rows
}

/** The content of a file; undefined when the workflow has no such file. */
export async function readWorkflowFile(db: Db, organizationId: string, workflowId: string, fileId: string) {
  const { rows } = await runStatement(db, READ_FILE, [organizationId, workflowId, fileId])
  return rows[0]?.content
}

/** Returns the bytes of all files of a workflow. */
export async function countFileBytes(tx: Transaction, workflowId: string): Promise<number> {
  const { rows } = await tx.query<{ bytes: number }>(
    'SELECT coalesce(sum(octet_length(content)), 0)::float8 AS bytes FROM files WHERE workflow_id = $1',
    [workflowId],
  )
  return rows[0]!.bytes
}
