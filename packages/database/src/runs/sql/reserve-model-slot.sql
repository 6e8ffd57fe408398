-- Reserves a time for a request to a model that has a limit; forgets a limit that was not reached for long. Without a
--   free time, `parked` gives the caller a time to try again.
-- By hand: one row by model orders the requests of all runners by the database's clock.
-- Parameters: $1 model, $2 the longest delay in ms, $3 whether the caller did not use its last time. Rows: one if the
--   model has a limit.
WITH forgotten AS (
  DELETE FROM model_limits
  WHERE model = $1 AND greatest(limited_at, not_before) < clock_timestamp() - interval ':FORGET_AFTER'
  RETURNING model
),
reserved AS (
  UPDATE model_limits SET
    last_at = greatest(last_at + interval_ms * interval '1 millisecond', not_before, clock_timestamp()),
    interval_ms = CASE WHEN $3 THEN interval_ms ELSE greatest(:MIN_INTERVAL_MS, interval_ms * :SHORTER) END
  WHERE model = $1 AND NOT EXISTS (SELECT FROM forgotten)
    AND greatest(last_at + interval_ms * interval '1 millisecond', not_before)
      <= clock_timestamp() + least($2, greatest(:MAX_AHEAD_MS, interval_ms)) * interval '1 millisecond'
  RETURNING last_at, not_before
),
parked AS (
  UPDATE model_limits SET
    parked_at = greatest(
      parked_at + :RETRY_PACE * interval_ms * interval '1 millisecond',
      last_at + interval_ms * interval '1 millisecond', not_before, clock_timestamp()
    )
  WHERE model = $1 AND NOT EXISTS (SELECT FROM forgotten) AND NOT EXISTS (SELECT FROM reserved)
  RETURNING parked_at, not_before
),
slot AS (
  SELECT last_at AS at, not_before, true AS is_reserved FROM reserved
  UNION ALL
  SELECT parked_at, not_before, false FROM parked
)
SELECT is_reserved AS "isReserved",
  greatest(0, 1000 * extract(epoch FROM at - clock_timestamp()))::float8 AS "delayMs",
  (1000 * extract(epoch FROM not_before - clock_timestamp()))::float8 AS "blockedMs"
FROM slot
