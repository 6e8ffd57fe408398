-- Counts the totals of starts and deliveries alone: those of an admin need no look-up for each of them, those of a
--   member one for the workflow of each delivery.
-- By hand: the first page of the application; the rows that are read are bounded.
-- Parameters: $1 organization, $2 and $3 the period, $4 member or null. Rows: one for each measure and label.
SELECT 'organization' AS kind, ':NIL_UUID' AS thing_id, 'starts' AS measure, label, sum(count)::float8 AS count,
  0 AS sum_ms, 0 AS tokens, 0 AS cost_micros
FROM (
  SELECT workflow_id, status AS label, count(*) AS count
  FROM (
    SELECT workflow_id, status FROM starts WHERE organization_id = $1 AND created_at >= $2 AND created_at < $3
    ORDER BY created_at DESC, id DESC LIMIT :MAX_LIVE_ROWS
  ) AS start GROUP BY 1, 2
) AS counted
WHERE $4::uuid IS NULL OR :IS_SEEN
GROUP BY label
UNION ALL
SELECT 'organization', ':NIL_UUID', 'deliveries', label, sum(count)::float8, 0, 0, 0
FROM (
  SELECT delivery.run_id IS NOT NULL AS has_run, delivery.outcome AS label, count(*) AS count,
    CASE WHEN $4::uuid IS NOT NULL THEN (SELECT workflow_id FROM starts WHERE id = delivery.run_id) END AS workflow_id
  FROM webhook_sources AS source CROSS JOIN LATERAL (
    SELECT outcome, kind, run_id FROM deliveries WHERE source_id = source.id AND created_at >= $2 AND created_at < $3
    ORDER BY created_at DESC, id DESC LIMIT :MAX_LIVE_ROWS
  ) AS delivery
  WHERE source.organization_id = $1 AND delivery.kind = 'payload' GROUP BY 1, 2, 4
) AS counted
WHERE $4::uuid IS NULL OR NOT has_run OR :IS_SEEN
GROUP BY label
