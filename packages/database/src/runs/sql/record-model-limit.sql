-- Records that a model's API limited a request. By hand: the interval grows once for requests that were limited
--   together.
-- Parameters: $1 model, $2 for how long the API asked to wait in ms. Rows: none.
INSERT INTO model_limits (model, not_before, last_at, parked_at, interval_ms, limited_at)
VALUES ($1, clock_timestamp() + $2 * interval '1 millisecond', clock_timestamp(), clock_timestamp(),
  :FIRST_INTERVAL_MS, clock_timestamp())
ON CONFLICT (model) DO UPDATE SET
  not_before = greatest(model_limits.not_before, excluded.not_before),
  interval_ms = CASE WHEN model_limits.limited_at < clock_timestamp() - greatest(1000, $2) * interval '1 millisecond'
    THEN least(:MAX_INTERVAL_MS, model_limits.interval_ms * :LONGER) ELSE model_limits.interval_ms END,
  limited_at = CASE WHEN model_limits.limited_at < clock_timestamp() - greatest(1000, $2) * interval '1 millisecond'
    THEN clock_timestamp() ELSE model_limits.limited_at END
