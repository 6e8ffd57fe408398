-- Records when keys were last used. Another gateway may have written a later time, which stays unless it is to come:
--   releases before wrote the times of the gateways' clocks.
-- By hand: one statement for many keys. Rows are locked in the order of their ids, so that two gateways do not
--   deadlock.
-- Parameters: $1 ids, $2 milliseconds ago. Rows: none.
WITH used AS (
  SELECT id, clock_timestamp() - age_ms * interval '1 millisecond' AS used_at
  FROM unnest($1::uuid[], $2::float8[]) AS used (id, age_ms)
),
locked AS (
  SELECT api_keys.id, used.used_at FROM api_keys JOIN used ON used.id = api_keys.id
  WHERE api_keys.last_used_at IS NULL OR api_keys.last_used_at < used.used_at
    OR api_keys.last_used_at > clock_timestamp()
  ORDER BY api_keys.id FOR NO KEY UPDATE OF api_keys
)
UPDATE api_keys SET last_used_at = locked.used_at FROM locked WHERE api_keys.id = locked.id
