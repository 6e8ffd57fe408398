-- Reads what an agent may know of sources. By hand: for the runner, which does without Prisma.
-- Parameters: $1 organization, $2 sources. Rows: those that are not deleted, in the order of $2.
SELECT id, name, description, example_request_body AS "exampleRequestBody"
FROM webhook_sources
WHERE id = ANY ($2::uuid[]) AND organization_id = $1 AND deleted_at IS NULL
ORDER BY array_position($2::uuid[], id)
