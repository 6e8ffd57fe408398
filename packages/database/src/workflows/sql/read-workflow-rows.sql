-- Reads the rows of the list of workflows: each with its number of triggers and its last run.
-- By hand: the bench's list of the application; the last run of each is read by an index.
-- Parameters: $1 organization, $2 workflows, $3 member or null. Rows: those that the person sees, in the order of $2.
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
WHERE workflow.id = ANY ($2::uuid[]) AND workflow.organization_id = $1 AND :IS_VISIBLE
ORDER BY array_position($2::uuid[], workflow.id)
