import { RULES_FILE_NAME, type WorkflowRowOut } from '@workflow-service/contract'
import { column, type Db, runStatement, statement } from '../connection/index.ts'
import { isVisible, queryVisible, type Viewer } from '../organizations/index.ts'
import type { WorkflowTexts } from './files.ts'
import { IS_BUILTIN } from './models.ts'
import { listWorkflows, type WorkflowQuery } from './workflows.ts'

const READ_ROWS = statement(
  'workflows/read-workflow-rows',
  {
    id: column.uuid,
    name: column.text(),
    scope: column.text(),
    is_active: column.boolean,
    trigger_count: column.integer,
    next_run_at: column.text().orNull,
    last_run: column.json<NonNullable<WorkflowRowOut['last_run']>>().orNull,
    updated_at: column.text(),
  },
  { IS_VISIBLE: isVisible('workflow', '$3') },
)

/** Lists the workflows that a person sees with their last runs (contract README, "Pagination and search"). */
export async function listWorkflowRows(db: Db, viewer: Viewer, query: WorkflowQuery) {
  const { workflows, hasMore } = await listWorkflows(db, viewer, query)
  const ids = workflows.map(({ id }) => id)
  return {
    rows: await findWorkflowRows(db, viewer, ids),
    /** After which the next page begins; undefined for the last page. */
    next: hasMore ? workflows.at(-1) : undefined,
  }
}

/** Those of the workflows with these ids that a person sees, in the order of the ids. */
export async function findWorkflowRows(
  db: Db,
  { organizationId, memberId }: Viewer,
  ids: readonly string[],
): Promise<readonly WorkflowRowOut[]> {
  return (await runStatement(db, READ_ROWS, [organizationId, ids, memberId])).rows
}

const MAX_MENTIONING = 100

/**
 * The first 100 workflows by name that a person sees, in whose `rules.yaml`, or else description, or with a model in
 * either, the words of a name occur one after the other: white space and quotation marks between them may be others.
 */
export async function listWorkflowsMentioning(db: Db, viewer: Viewer, name: string) {
  return await queryVisible<WorkflowTexts & { readonly is_active: boolean }>(
    db,
    viewer,
    `SELECT workflow.id, workflow.name, workflow.is_active, workflow.description, file.content AS rules,
       ${IS_BUILTIN} AS is_builtin
     FROM workflows AS workflow
     LEFT JOIN files AS file ON file.workflow_id = workflow.id AND file.path = '{}' AND file.name = '${RULES_FILE_NAME}'
     WHERE workflow.organization_id = $1 AND ${isVisible('workflow', '$2')}
       AND CASE WHEN ${IS_BUILTIN} THEN coalesce(file.content, workflow.description)
         ELSE concat_ws(E'\\n', workflow.description, file.content) END ~* $3
     ORDER BY workflow.name, workflow.id LIMIT ${MAX_MENTIONING}`,
    name.match(/[\p{L}\p{M}\p{N}]+/gu)?.join('[^[:alnum:]]+') ?? name.replaceAll(/./gsu, String.raw`\$&`),
  )
}
