-- Counts a batch of starts by workflow, API key, status and class of durations, with the tokens and the cost of their
--   models; their answers by model; and their look-ups.
-- By hand: the roll-up reads each start once, in batches, along the index of the list.
-- Parameters: $1 organization, $2 and $3 the period, $4 and $5 the position after which the batch begins, $6 limit.
--   Rows: one.
WITH batch AS MATERIALIZED (
  SELECT id, created_at, workflow_id, api_key_id, status,
    (1000 * extract(epoch FROM finished_at - started_at))::bigint AS run_ms
  FROM starts
  WHERE organization_id = $1 AND created_at >= $2 AND created_at < $3 AND (created_at, id) > ($4, $5)
  ORDER BY created_at, id LIMIT $6
),
answers AS MATERIALIZED (
  SELECT batch.id, answer.* FROM batch CROSS JOIN LATERAL (
    SELECT coalesce(data->>'model_name', data->>'model', 'unknown')
        || CASE WHEN data->>'key_of' = 'organization' THEN ', own key' ELSE '' END AS model,
      count(*) AS count,
      sum(coalesce((data->>'input_tokens')::bigint, 0) + coalesce((data->>'output_tokens')::bigint, 0)) AS tokens,
      sum(coalesce((data->>'cost_micros')::bigint, 0)) AS cost
    FROM run_steps WHERE run_id = batch.id AND kind IN ('model_answer', 'session_summary') GROUP BY 1
  ) AS answer
),
lookups AS MATERIALIZED (
  SELECT batch.workflow_id, batch.api_key_id, called.* FROM batch CROSS JOIN LATERAL (
    -- Of a call, `id` is in its step, and `bytes` in that of its result.
    SELECT max(data->'lookup'->>'id') AS lookup_id, coalesce(sum((data->'lookup'->>'bytes')::bigint), 0) AS bytes
    FROM run_steps WHERE run_id = batch.id AND kind IN ('tool_call', 'tool_result') AND data->'lookup' IS NOT NULL
    GROUP BY data->>'call_id'
  ) AS called
)
SELECT (
    SELECT json_agg(grouped) FROM (
      SELECT workflow_id, api_key_id, status AS label,
        round(power(:CLASS_FACTOR, ceil(ln(greatest(run_ms, 1)) / ln(:CLASS_FACTOR)) - 0.5))::bigint::text AS run_class,
        count(*)::float8 AS count, coalesce(sum(run_ms), 0)::float8 AS sum_ms, coalesce(sum(tokens), 0)::float8 AS tokens,
        coalesce(sum(cost), 0)::float8 AS cost_micros
      FROM (
        SELECT batch.*, used.tokens, used.cost FROM batch
        LEFT JOIN (SELECT id, sum(tokens) AS tokens, sum(cost) AS cost FROM answers GROUP BY 1) AS used USING (id)
      ) AS measured
      GROUP BY 1, 2, 3, 4
    ) AS grouped
  ) AS groups,
  (
    SELECT json_agg(grouped) FROM (
      SELECT model AS label, sum(count)::float8 AS count, sum(tokens)::float8 AS tokens, sum(cost)::float8 AS cost_micros
      FROM answers GROUP BY 1
    ) AS grouped
  ) AS models,
  (
    SELECT json_agg(grouped) FROM (
      SELECT workflow_id, api_key_id, lookup_id, count(*)::float8 AS calls, sum(bytes)::float8 AS bytes FROM lookups GROUP BY 1, 2, 3
    ) AS grouped
  ) AS lookups,
  count(*)::integer AS rows, max(created_at) AS last_created_at,
  (SELECT id FROM batch ORDER BY created_at DESC, id DESC LIMIT 1) AS last_id
FROM batch
