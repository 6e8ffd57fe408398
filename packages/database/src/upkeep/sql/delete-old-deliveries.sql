-- Deletes old entries of the log of deliveries. Keeps those of a run that has not ended, and what the usage has not
--   counted.
-- By hand: only whole days are compared, for the index deliveries_day: with the exact time, a batch that finds few
--   entries reads those of a whole day. ARRAY(…) is evaluated once; with IN, PostgreSQL may evaluate it again for
--   each row. A scalar subquery finds each start by its key; for NOT EXISTS, a plan that was made on an empty table
--   reads all starts.
-- Parameters: $1 age in days, $2 limit. Rows: none.
DELETE FROM deliveries WHERE id = ANY (ARRAY(
  SELECT id FROM deliveries
  WHERE (created_at AT TIME ZONE 'UTC')::date < (:RETENTION_LIMIT AT TIME ZONE 'UTC')::date
    AND :IS_COUNTED
    AND outcome <> 'in_flight'
    AND coalesce((SELECT finished_at IS NOT NULL FROM starts WHERE starts.id = deliveries.run_id), true)
  LIMIT $2 FOR UPDATE SKIP LOCKED
))
