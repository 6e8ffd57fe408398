-- Records when keys were last used. Another gateway may have written a later time, which stays.
-- By hand: one statement for many keys. Rows are locked in the order of their ids, so that two gateways do not
--   deadlock.
-- Parameters: $1 ids, $2 times. Rows: none.
WITH used AS (SELECT * FROM unnest($1::uuid[], $2::timestamptz[]) AS used (id, used_at)),
locked AS (
  SELECT api_keys.id, used.used_at FROM api_keys JOIN used ON used.id = api_keys.id
  WHERE api_keys.last_used_at IS NULL OR api_keys.last_used_at < used.used_at
  ORDER BY api_keys.id FOR NO KEY UPDATE OF api_keys
)
UPDATE api_keys SET last_used_at = locked.used_at FROM locked WHERE api_keys.id = locked.id
