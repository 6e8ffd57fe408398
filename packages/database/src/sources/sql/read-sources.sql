-- Reads what an agent may know of sources. By hand: for the runner, which does without Prisma.
--   An example that exceeds the limit is not sent: parsing 300 kB held up the other runs of a process for 5 ms.
-- Parameters: $1 organization, $2 sources. Rows: those that are not deleted, in the order of $2.
SELECT id, name, description,
  CASE WHEN octet_length(example_request_body::text) <= :EXAMPLE_MAX_BYTES THEN example_request_body END
    AS "exampleRequestBody"
FROM webhook_sources
WHERE id = ANY ($2::uuid[]) AND organization_id = $1 AND deleted_at IS NULL
ORDER BY array_position($2::uuid[], id)
