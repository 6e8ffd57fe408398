-- Deletes Idempotency-Keys that are older than 24 hours.
-- By hand: ARRAY(…) is evaluated once. With IN, PostgreSQL may evaluate the batch again for each row, and delete more
--   than the limit.
-- Parameters: $1 limit. Rows: none.
DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM idempotency_keys
  WHERE created_at <= now() - interval '24 hours'
  ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED
))
