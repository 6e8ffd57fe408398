-- Reads the content of a file. By hand: for the runner, as list-workflow-files.
-- Parameters: $1 organization, $2 workflow, $3 file. Rows: at most one.
SELECT files.content
FROM files JOIN workflows ON workflows.id = files.workflow_id
WHERE workflows.organization_id = $1 AND workflows.id = $2 AND files.id = $3
