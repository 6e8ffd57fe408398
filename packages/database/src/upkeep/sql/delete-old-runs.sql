-- Deletes old runs with their journals and approvals. Keeps a run with a delivery that is unknown or in flight, one
--   whose Idempotency-Key is still answered, and what the usage has not counted.
-- By hand: ARRAY(…) is evaluated once. Scalar subqueries find their rows by key; for NOT EXISTS, PostgreSQL may read
--   the whole table.
-- Parameters: $1 age in days, $2 organization, $3 and $4 the position after which the batch begins, $5 limit. Rows:
--   one, unless nothing was read.
WITH :OLD_RUNS,
deleted AS (
  DELETE FROM starts WHERE id = ANY (ARRAY(
    SELECT id FROM starts WHERE id = ANY (ARRAY(
      SELECT id FROM batch
      WHERE has_ended AND :IS_COUNTED
        AND (
          SELECT true FROM deliveries
          WHERE run_id = batch.id AND outcome IN ('unknown', 'in_flight') LIMIT 1
        ) IS NULL
        AND (
          SELECT true FROM idempotency_keys
          WHERE start_id = batch.id AND created_at > now() - interval '24 hours' LIMIT 1
        ) IS NULL
    ))
    FOR UPDATE SKIP LOCKED
  ))
  RETURNING id
)
:LAST_OF_BATCH
