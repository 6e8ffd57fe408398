-- Lists workflows, oldest first. By hand: the bench's list.
-- Parameters: $1 organization, $2 and $3 the position after which the page begins, $4 limit. Rows: the page.
SELECT id, created_at AS "createdAt",
  version || ' ' || (SELECT users_version FROM organizations WHERE id = $1) AS version
FROM workflows
WHERE organization_id = $1 AND (created_at, id) > ($2, $3) AND deleted_at IS NULL
ORDER BY created_at, id LIMIT $4
