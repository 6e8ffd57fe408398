-- Counts a batch of starts for the usage: of the organization, by workflow and by API key, those by status, with the
--   tokens and the cost of their models, and by class of durations; their answers by model; and their look-ups.
-- By hand: the roll-up reads each start once, in batches, along the index of the list. Runs and their answers are
--   added up together: a join would compare each with each. json_to_record parses an answer once, not once a field.
-- Parameters: $1 organization, $2 and $3 the period, $4 and $5 the position after which the batch begins, $6 limit.
--   Rows: one.
WITH batch AS MATERIALIZED (
  SELECT id, created_at, workflow_id, api_key_id, status, run_ms,
    CASE WHEN run_ms IS NOT NULL
      THEN round(power(:CLASS_FACTOR, ceil(ln(greatest(run_ms, 1)) / ln(:CLASS_FACTOR)) - 0.5))::bigint::text
    END AS run_class
  FROM (
    SELECT *, (1000 * extract(epoch FROM finished_at - started_at))::bigint AS run_ms FROM starts
    WHERE organization_id = $1 AND created_at >= $2 AND created_at < $3 AND (created_at, id) > ($4, $5)
    ORDER BY created_at, id LIMIT $6
  ) AS start
),
answers AS MATERIALIZED (
  SELECT workflow_id, api_key_id, status, run_class, answer.* FROM batch CROSS JOIN LATERAL (
    SELECT coalesce(model_name, model, 'unknown')
        || CASE WHEN key_of = 'organization' THEN ', own key' ELSE '' END AS label,
      count(*) AS count, sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)) AS tokens,
      sum(coalesce(cost_micros, 0)) AS cost
    FROM run_steps CROSS JOIN LATERAL json_to_record(data)
      AS step (model_name text, model text, key_of text, input_tokens bigint, output_tokens bigint, cost_micros bigint)
    WHERE run_id = batch.id AND kind IN ('model_answer', 'session_summary') GROUP BY 1
  ) AS answer
),
measured AS MATERIALIZED (
  SELECT workflow_id, api_key_id, status, run_class, sum(count) AS count, sum(run_ms) AS sum_ms, sum(tokens) AS tokens,
    sum(cost) AS cost
  FROM (
    SELECT workflow_id, api_key_id, status, run_class, 1 AS count, run_ms, 0 AS tokens, 0 AS cost FROM batch
    UNION ALL SELECT workflow_id, api_key_id, status, run_class, 0, 0, tokens, cost FROM answers
  ) AS run
  GROUP BY workflow_id, api_key_id, status, run_class
),
lookups AS MATERIALIZED (
  SELECT batch.workflow_id, batch.api_key_id, called.* FROM batch CROSS JOIN LATERAL (
    -- Of a call, `id` is in its step, and `bytes` in that of its result.
    SELECT max(data->'lookup'->>'id') AS lookup_id, coalesce(sum((data->'lookup'->>'bytes')::bigint), 0) AS bytes
    FROM run_steps WHERE run_id = batch.id AND kind IN ('tool_call', 'tool_result') AND data->'lookup' IS NOT NULL
    GROUP BY data->>'call_id'
  ) AS called
),
counted (kind, thing_id, measure, label, count, sum_ms, tokens, cost) AS (
  SELECT kind, thing_id, measure, label, count, of_measure.sum_ms, of_measure.tokens, of_measure.cost
  FROM measured
  CROSS JOIN LATERAL (
    VALUES ('organization', NULL), ('workflow', workflow_id), ('api_key', api_key_id)
  ) AS thing (kind, thing_id)
  CROSS JOIN LATERAL (
    VALUES ('starts', status, 0, tokens, cost), ('run_ms', run_class, sum_ms, 0, 0)
  ) AS of_measure (measure, label, sum_ms, tokens, cost)
  WHERE label IS NOT NULL
  UNION ALL
  SELECT 'model', NULL, 'answers', label, count, 0, tokens, cost FROM answers
  UNION ALL
  SELECT kind, thing_id, 'lookups', label, amount, 0, 0, 0
  FROM lookups
  CROSS JOIN LATERAL (
    VALUES ('workflow', workflow_id), ('api_key', api_key_id), ('lookup', lookup_id::uuid)
  ) AS thing (kind, thing_id)
  CROSS JOIN LATERAL (VALUES ('calls', 1), ('bytes', bytes)) AS amount (label, amount)
)
SELECT :USAGE_OF_BATCH
