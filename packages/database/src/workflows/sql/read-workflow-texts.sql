-- Reads what the built-in agent reads of workflows before it plans a run, and whether it executes their runs. By
--   hand: for the runner, as list-workflow-files.
-- Parameters: $1 organization, $2 workflows. Rows: one for each that exists, by name.
SELECT workflow.id, workflow.name, workflow.description, left(file.content, :RULES_READ_LENGTH) AS rules,
  :IS_BUILTIN AS is_builtin,
  COALESCE((SELECT input_message FROM triggers WHERE workflow_id = workflow.id AND is_active AND source_slug = 'api'
    ORDER BY created_at, id LIMIT 1), '') AS input_message
FROM workflows AS workflow
LEFT JOIN files AS file ON file.workflow_id = workflow.id AND file.path = '{}' AND file.name = ':RULES_FILE_NAME'
WHERE workflow.organization_id = $1 AND workflow.id = ANY ($2::uuid[]) AND workflow.deleted_at IS NULL
ORDER BY workflow.name, workflow.id
