-- Reads a workflow as the editor shows it, in the orders of the public API's document (find-workflows).
-- By hand: one round trip within every edit, where Prisma makes one for each of the six tables.
-- Parameters: $1 organization, $2 workflow, $3 the member. Rows: one if the person sees it.
SELECT row_to_json(document) AS document FROM (
  SELECT workflow.id, workflow.name, workflow.description, workflow.scope, workflow.is_active,
    json_build_object('enabled', workflow.auto_run_enabled, 'frequency', workflow.auto_run_frequency,
      'timing', workflow.auto_run_timing,
      'anchor_at', workflow.auto_run_anchor_at, 'next_at', workflow.auto_run_next_at) AS schedule,
    json_build_object('model', workflow.model, 'run_budget', workflow.run_budget, 'day_budget', workflow.day_budget,
      'when_spent', workflow.when_spent) AS agent,
    (
      SELECT coalesce(json_agg(item), '[]') FROM (
        SELECT users.id, users.email,
          trim(concat_ws(' ', nullif(users.first_name, ''), nullif(users.last_name, ''))) AS name
        FROM workflow_users JOIN users ON users.id = workflow_users.user_id
        WHERE workflow_users.workflow_id = workflow.id ORDER BY users.email
      ) AS item
    ) AS users,
    :TRIGGERS AS triggers,
    (
      SELECT coalesce(json_agg(item), '[]') FROM (
        SELECT id, name, path, octet_length(content) AS size, version
        FROM files WHERE files.workflow_id = workflow.id ORDER BY path, name
      ) AS item
    ) AS files,
    to_char(workflow.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS created_at,
    to_char(workflow.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS updated_at
  FROM workflows AS workflow
  WHERE workflow.organization_id = $1 AND workflow.id = $2 AND :IS_VISIBLE
) AS document
