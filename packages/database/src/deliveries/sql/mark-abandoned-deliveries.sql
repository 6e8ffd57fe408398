-- Records as `unknown` what has been in flight for longer than any exchange takes. Of several dispatchers each skips
--   what another one has locked.
-- By hand: ARRAY(…) is evaluated once. With IN, PostgreSQL may join the batch to the table and evaluate it again for
--   each row: the statement then takes seconds, and writes more rows than a batch.
-- Parameters: $1 reason, $2 age in ms, $3 limit. Rows: none.
UPDATE deliveries SET outcome = 'unknown', reason = $1, finished_at = now()
WHERE id = ANY (ARRAY(
  SELECT id FROM deliveries
  WHERE outcome = 'in_flight' AND created_at < now() - $2 * interval '1 millisecond'
  ORDER BY created_at LIMIT $3 FOR UPDATE SKIP LOCKED
))
