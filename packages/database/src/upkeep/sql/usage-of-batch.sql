-- What both counts return: the rows of `usage_hours` that the CTE `counted` adds up to, how many rows the batch has,
--   and its last one, after which the next batch begins. A fragment.
(
    SELECT json_agg(added) FROM (
      SELECT kind, coalesce(thing_id, ':NIL_UUID') AS thing_id, measure, label, sum(count)::float8 AS count,
        coalesce(sum(sum_ms), 0)::float8 AS sum_ms, coalesce(sum(tokens), 0)::float8 AS tokens,
        coalesce(sum(cost), 0)::float8 AS cost_micros
      FROM counted GROUP BY 1, 2, 3, 4
    ) AS added
  ) AS usage,
  count(*)::integer AS rows, max(created_at) AS last_created_at,
  (SELECT id FROM batch ORDER BY created_at DESC, id DESC LIMIT 1) AS last_id
FROM batch
