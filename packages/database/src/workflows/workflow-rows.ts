import { type Db, foldSearch, type NamedStatement, NIL_UUID, runStatement } from '../connection/index.ts'
import type { WorkflowRowOut } from '@workflow-service/contract'
import { isVisible, type Viewer } from '../organizations/index.ts'
import { listWorkflows, type WorkflowPosition, type WorkflowQuery } from './workflows.ts'

/**
 * The list and the search of a member, with the steps of SEARCH_WORKFLOWS. When few of the next 250 workflows match:
 *
 * - If the text is frequent, the member sees few workflows: `listed` reads those that list the member, each by its id, and
 *   `company_wide` continues along the list of the others.
 * - Otherwise `rare` reads all matches of the text from the search index.
 */
const LIST_VISIBLE_WORKFLOWS: NamedStatement = {
  name: 'list-visible-workflows',
  text: `
    WITH near AS MATERIALIZED (
      SELECT id, created_at, strpos(search_text, $5) > 0 AS has_text, ${isVisible('workflows', '$6')} AS is_visible
      FROM workflows
      WHERE organization_id = $1 AND (created_at, id) > ($2, $3) AND deleted_at IS NULL
      ORDER BY created_at, id LIMIT 250
    ),
    counts AS MATERIALIZED (
      SELECT count(*) FILTER (WHERE has_text AND is_visible) >= 4 AS is_frequent,
        count(*) FILTER (WHERE has_text) >= 4 AS is_frequent_text,
        count(*) FILTER (WHERE has_text AND is_visible) < $4 AND count(*) = 250 AS is_open,
        max(created_at) AS last_created_at, (array_agg(id ORDER BY created_at DESC, id DESC))[1] AS last_id
      FROM near
    ),
    further AS (
      SELECT id, created_at FROM workflows
      WHERE (SELECT is_open AND is_frequent FROM counts)
        AND organization_id = $1
        AND (created_at, id) > ((SELECT last_created_at FROM counts), (SELECT last_id FROM counts))
        AND strpos(search_text, $5) > 0 AND ${isVisible('workflows', '$6')}
      ORDER BY created_at, id LIMIT $4
    ),
    membership AS MATERIALIZED (
      SELECT workflow_id FROM workflow_users
      WHERE (SELECT is_open AND NOT is_frequent AND is_frequent_text FROM counts) AND user_id = $6
    ),
    listed AS (
      SELECT workflow.id, workflow.created_at
      FROM membership
      CROSS JOIN LATERAL (SELECT * FROM workflows WHERE id = membership.workflow_id LIMIT 1) AS workflow
      WHERE workflow.organization_id = $1 AND workflow.scope <> 'company_wide' AND workflow.deleted_at IS NULL
        AND (workflow.created_at, workflow.id) > ((SELECT last_created_at FROM counts), (SELECT last_id FROM counts))
        AND strpos(workflow.search_text, $5) > 0
      ORDER BY workflow.created_at, workflow.id LIMIT $4
    ),
    company_wide AS (
      SELECT id, created_at FROM workflows
      WHERE (SELECT is_open AND NOT is_frequent AND is_frequent_text FROM counts)
        AND organization_id = $1 AND scope = 'company_wide' AND deleted_at IS NULL
        AND (created_at, id) > ((SELECT last_created_at FROM counts), (SELECT last_id FROM counts))
        AND strpos(search_text, $5) > 0
      ORDER BY created_at, id LIMIT $4
    ),
    candidate AS MATERIALIZED (
      SELECT * FROM workflows
      WHERE (SELECT is_open AND NOT is_frequent AND NOT is_frequent_text FROM counts)
        AND workflow_search_grams(organization_id, search_text, 1)
          @> (SELECT workflow_search_grams($1, $5, least(char_length($5), 3)))
        AND organization_id = $1
    ),
    rare AS (
      SELECT id, created_at FROM candidate
      WHERE (created_at, id) > ((SELECT last_created_at FROM counts), (SELECT last_id FROM counts))
        AND strpos(search_text, $5) > 0 AND ${isVisible('candidate', '$6')}
      ORDER BY created_at, id LIMIT $4
    )
    SELECT id, created_at AS "createdAt" FROM (
      SELECT id, created_at FROM near WHERE has_text AND is_visible
      UNION ALL SELECT id, created_at FROM further
      UNION ALL SELECT id, created_at FROM listed
      UNION ALL SELECT id, created_at FROM company_wide
      UNION ALL SELECT id, created_at FROM rare
    ) AS page
    ORDER BY created_at, id LIMIT $4`,
}

/** Lists the positions of the workflows that a person sees. */
async function listPositions(
  db: Db,
  { organizationId, memberId }: Viewer,
  query: WorkflowQuery,
): Promise<{ readonly workflows: readonly WorkflowPosition[]; readonly hasMore: boolean }> {
  if (memberId === null) return await listWorkflows(db, organizationId, query)
  const { limit, after, search = '' } = query
  const { rows } = await runStatement<{ id: string; createdAt: Date }>(db, LIST_VISIBLE_WORKFLOWS, [
    organizationId,
    after?.createdAt.toISOString() ?? '-infinity',
    after?.id ?? NIL_UUID,
    // One row more than the page has shows whether there is a next page.
    limit + 1,
    foldSearch(search),
    memberId,
  ])
  return { workflows: rows.slice(0, limit), hasMore: rows.length > limit }
}

const READ_ROWS: NamedStatement = {
  name: 'read-workflow-rows',
  text: `
    SELECT workflow.id, workflow.name, workflow.scope, workflow.is_active,
      (SELECT count(*)::integer FROM triggers WHERE workflow_id = workflow.id) AS trigger_count,
      CASE WHEN workflow.is_active
        THEN to_char(workflow.auto_run_next_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') END AS next_run_at,
      (
        SELECT json_build_object('id', id, 'status', status, 'error', error,
          'created_at', to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
        FROM starts WHERE workflow_id = workflow.id ORDER BY created_at DESC, id DESC LIMIT 1
      ) AS last_run,
      to_char(workflow.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS updated_at
    FROM workflows AS workflow
    WHERE workflow.id = ANY ($2::uuid[]) AND workflow.organization_id = $1 AND ${isVisible('workflow', '$3')}
    ORDER BY array_position($2::uuid[], workflow.id)`,
}

/** One page of the workflows that a person sees, oldest first. */
export interface WorkflowRows {
  readonly rows: readonly WorkflowRowOut[]
  /** After which the next page begins; undefined for the last page. */
  readonly next: WorkflowPosition | undefined
}

/** Lists the workflows that a person sees with their last runs (contract README, "Pagination and search"). */
export async function listWorkflowRows(db: Db, viewer: Viewer, query: WorkflowQuery): Promise<WorkflowRows> {
  const { workflows, hasMore } = await listPositions(db, viewer, query)
  const ids = workflows.map(({ id }) => id)
  return { rows: await findWorkflowRows(db, viewer, ids), next: hasMore ? workflows.at(-1) : undefined }
}

/** Those of the workflows with these ids that a person sees, in the order of the ids. */
export async function findWorkflowRows(
  db: Db,
  { organizationId, memberId }: Viewer,
  ids: readonly string[],
): Promise<readonly WorkflowRowOut[]> {
  return (await runStatement<WorkflowRowOut>(db, READ_ROWS, [organizationId, ids, memberId])).rows
}
