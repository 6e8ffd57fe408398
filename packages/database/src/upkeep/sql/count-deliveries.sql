-- Counts a batch of the deliveries of a source by outcome: of the organization, by workflow, by API key and of the
--   source. Verifications are no usage. By hand: as count-starts.
-- Parameters: $1 to $6 as in count-starts, $7 source. Rows: one.
WITH batch AS MATERIALIZED (
  SELECT id, created_at, run_id, kind, outcome FROM deliveries
  WHERE source_id = $7 AND organization_id = $1 AND created_at >= $2 AND created_at < $3 AND (created_at, id) > ($4, $5)
  ORDER BY created_at, id LIMIT $6
),
counted AS (
  SELECT thing.kind, thing_id, 'deliveries' AS measure, outcome AS label, 1 AS count, 0 AS sum_ms, 0 AS tokens,
    0 AS cost
  FROM batch
  -- LIMIT: with a plan of emptied tables, a join would compare each with each.
  LEFT JOIN LATERAL (SELECT workflow_id, api_key_id FROM starts WHERE id = batch.run_id LIMIT 1) AS start ON true
  CROSS JOIN LATERAL (
    VALUES ('organization', NULL), ('workflow', workflow_id), ('api_key', api_key_id), ('webhook_source', $7)
  ) AS thing (kind, thing_id)
  WHERE batch.kind = 'payload'
)
SELECT :USAGE_OF_BATCH
