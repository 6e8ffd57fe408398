-- Counts a batch of the deliveries of a source by workflow, API key and outcome. Verifications are no usage. By hand:
--   as count-starts.
-- Parameters: $1 to $6 as in count-starts, $7 source. Rows: one.
WITH batch AS MATERIALIZED (
  SELECT id, created_at, run_id, kind, outcome FROM deliveries
  WHERE source_id = $7 AND organization_id = $1 AND created_at >= $2 AND created_at < $3 AND (created_at, id) > ($4, $5)
  ORDER BY created_at, id LIMIT $6
)
SELECT (
    SELECT json_agg(grouped) FROM (
      SELECT start.workflow_id, start.api_key_id, batch.outcome AS label, NULL AS run_class,
        count(*)::float8 AS count, 0 AS sum_ms, 0 AS tokens, 0 AS cost_micros
      FROM batch LEFT JOIN starts AS start ON start.id = batch.run_id
      WHERE batch.kind = 'payload'
      GROUP BY 1, 2, 3
    ) AS grouped
  ) AS groups,
  NULL::json AS models, NULL::json AS lookups,
  count(*)::integer AS rows, max(created_at) AS last_created_at,
  (SELECT id FROM batch ORDER BY created_at DESC, id DESC LIMIT 1) AS last_id
FROM batch
