-- Reads the versions of workflow documents, to answer from the gateway's cache.
-- By hand: the bench's cached read; LEFT JOIN as in find-workflows.
-- Parameters: $1 JSON list of organization_id and workflow_id. Rows: one for each look-up of a known organization.
SELECT lookup.position::integer AS position, workflow.version || ' ' || organization.users_version AS version
FROM ROWS FROM (json_to_recordset($1::json) AS (organization_id uuid, workflow_id uuid))
  WITH ORDINALITY AS lookup (organization_id, workflow_id, position)
LEFT JOIN workflows AS workflow
  ON workflow.organization_id = lookup.organization_id AND workflow.id = lookup.workflow_id
  AND workflow.deleted_at IS NULL
JOIN organizations AS organization ON organization.id = lookup.organization_id
