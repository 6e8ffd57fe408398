-- Counts a batch of starts by workflow, API key, status and class of durations, with the tokens of their models.
-- By hand: the roll-up reads each start once, in batches, along the index of the list.
-- Parameters: $1 organization, $2 and $3 the period, $4 and $5 the position after which the batch begins, $6 limit.
--   Rows: one.
WITH batch AS MATERIALIZED (
  SELECT id, created_at, workflow_id, api_key_id, status,
    (1000 * extract(epoch FROM finished_at - started_at))::bigint AS run_ms
  FROM starts
  WHERE organization_id = $1 AND created_at >= $2 AND created_at < $3 AND (created_at, id) > ($4, $5)
  ORDER BY created_at, id LIMIT $6
)
SELECT (
    SELECT json_agg(grouped) FROM (
      SELECT workflow_id, api_key_id, status AS label,
        round(power(:CLASS_FACTOR, ceil(ln(greatest(run_ms, 1)) / ln(:CLASS_FACTOR)) - 0.5))::bigint::text AS run_class,
        count(*)::float8 AS count, coalesce(sum(run_ms), 0)::float8 AS sum_ms, coalesce(sum(tokens), 0)::float8 AS tokens
      FROM (
        SELECT *, (
          SELECT sum(coalesce((data->>'input_tokens')::bigint, 0) + coalesce((data->>'output_tokens')::bigint, 0))
          FROM run_steps WHERE run_id = batch.id AND kind = 'model_answer'
        ) AS tokens FROM batch
      ) AS measured
      GROUP BY 1, 2, 3, 4
    ) AS grouped
  ) AS groups,
  count(*)::integer AS rows, max(created_at) AS last_created_at,
  (SELECT id FROM batch ORDER BY created_at DESC, id DESC LIMIT 1) AS last_id
FROM batch
