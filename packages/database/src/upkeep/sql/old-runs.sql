-- The CTE `batch`: the oldest runs after a position, as many as $5 and as the rows of their journals allow. A
--   fragment of the deletions of runs and of journals. PostgreSQL stores a large value in pieces of about 2,000
--   bytes, which count as rows.
read AS MATERIALIZED (
  SELECT id, created_at, finished_at, coalesce(finished_at < :LIMIT, false) AS has_ended
  FROM starts
  WHERE organization_id = $2 AND created_at < :LIMIT AND (created_at, id) > :AFTER
  ORDER BY created_at, id LIMIT $5
),
weighed AS MATERIALIZED (
  SELECT read.*, row_number() OVER in_order AS position, sum(step_rows) OVER in_order AS step_rows
  FROM read CROSS JOIN LATERAL (
    :COUNT_STEP_ROWS WHERE run_id = read.id
  ) AS journal
  WINDOW in_order AS (ORDER BY created_at, id)
),
batch AS MATERIALIZED (
  SELECT id, created_at, has_ended, position FROM weighed
  WHERE (step_rows <= :MAX_STEP_ROWS OR position = 1) AND :IS_DUE
)
