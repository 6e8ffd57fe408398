-- Reserves a time for a request to a model that has a limit; forgets a limit that was not reached for long. Without a
--   free time, `waiting` gives the caller a time to try again: in the next round, which has one run of each
--   organization that waits, so that thousands of runs of one do not postpone those of another; or after the runs of
--   all, if that is earlier. Without that, slots would stay unused when there are fewer organizations than rounds were
--   made for.
-- By hand: one row by model orders the requests of all runners by the database's clock.
-- Parameters: $1 model, $2 the longest delay in ms, $3 whether the caller did not use its last time, $4 organization.
--   Rows: one if the model has a limit.
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
latest AS MATERIALIZED (
  SELECT model, not_before, parked_at, :RETRY_PACE * interval_ms * interval '1 millisecond' AS step,
    greatest(last_at + interval_ms * interval '1 millisecond', not_before, clock_timestamp()) AS next_at
  FROM model_limits WHERE model = $1 AND NOT EXISTS (SELECT FROM forgotten) AND NOT EXISTS (SELECT FROM reserved)
  FOR NO KEY UPDATE
),
turn AS (
  SELECT model, not_before, next_at - step AS now_at, greatest(parked_at + step, next_at) AS after_all,
    step * greatest(1, (
      SELECT count(*) FROM model_waits AS waits WHERE waits.model = $1 AND waits.parked_at > clock_timestamp()
    )) AS round
  FROM latest
),
waiting AS (
  INSERT INTO model_waits (model, organization_id, parked_at)
  SELECT model, $4, least(after_all, now_at + round) FROM turn
  ON CONFLICT (model, organization_id) DO UPDATE SET parked_at = (
    SELECT least(after_all, greatest(now_at, model_waits.parked_at) + round) FROM turn
  )
  RETURNING parked_at
),
parked AS (
  UPDATE model_limits SET parked_at = turn.after_all FROM waiting, turn
  WHERE model_limits.model = turn.model AND waiting.parked_at = turn.after_all
),
slot AS (
  SELECT last_at AS at, not_before, true AS is_reserved FROM reserved
  UNION ALL
  SELECT waiting.parked_at, not_before, false FROM waiting, turn
)
SELECT is_reserved AS "isReserved",
  greatest(0, 1000 * extract(epoch FROM at - clock_timestamp()))::float8 AS "delayMs",
  (1000 * extract(epoch FROM not_before - clock_timestamp()))::float8 AS "blockedMs"
FROM slot
