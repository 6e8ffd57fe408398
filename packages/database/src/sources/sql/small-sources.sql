-- The sources of organizations, for those that have few and small ones. A fragment of list-small-sources and of the
--   acquisition of sessions, so that most runs need no look-up of their sources.
-- By hand: pg_column_size reads no large value, so that a compressed example of more than COMPRESSED_MAX_BYTES counts
--   as too large; one source more than the limit shows that there are too many.
-- Rows: organization_id, and sources as a JSON list, sorted by name in code point order.
SELECT organization_id, coalesce(json_agg(json_build_object(
  'id', id, 'name', name, 'description', description, 'exampleRequestBody', example_request_body
) ORDER BY name COLLATE "C", id) FILTER (WHERE id IS NOT NULL), '[]') AS sources
FROM (
  SELECT organization.id AS organization_id, source.*, count(*) OVER in_organization AS count,
    sum(source.bytes) OVER in_organization AS total_bytes
  FROM :ORGANIZATIONS AS organization
  LEFT JOIN LATERAL (
    SELECT id, name, description, example_request_body, octet_length(description) +
      CASE WHEN pg_column_size(example_request_body) <= :COMPRESSED_MAX_BYTES
        THEN octet_length(example_request_body::text) ELSE :TOO_LARGE END AS bytes
    FROM webhook_sources
    WHERE organization_id = organization.id AND deleted_at IS NULL
    LIMIT :READ_MAX
  ) AS source ON true
  WINDOW in_organization AS (PARTITION BY organization.id)
) AS counted
WHERE count <= :MAX_COUNT AND coalesce(total_bytes, 0) <= :MAX_BYTES
GROUP BY organization_id
