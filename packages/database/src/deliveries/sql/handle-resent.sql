-- Records that failed deliveries need no attention: a resend whose outcome is known now stands for their payload, or
--   the payload was accepted.
-- By hand: recursive. It locks in the order of the ids, as a person who marks them as done does.
-- Parameters: $1 resends. Rows: none.
WITH RECURSIVE up AS (
  SELECT id AS resend_id, created_at AS resent_at, id, resend_of AS parent, 0 AS depth FROM deliveries
  WHERE id = ANY ($1::uuid[])
  UNION ALL
  SELECT up.resend_id, up.resent_at, deliveries.id, deliveries.resend_of, depth + 1
  FROM up JOIN deliveries ON deliveries.id = up.parent WHERE depth < 100
),
sent AS (
  SELECT resend_id, resent_at, id, 0 AS depth FROM (
    SELECT DISTINCT ON (resend_id) * FROM up ORDER BY resend_id, depth DESC
  ) AS first
  UNION ALL
  SELECT sent.resend_id, sent.resent_at, deliveries.id, depth + 1
  FROM sent JOIN deliveries ON deliveries.resend_of = sent.id WHERE depth < 100
),
found AS (
  SELECT deliveries.id, deliveries.outcome, (deliveries.created_at, deliveries.id) < (resent_at, resend_id) AS is_earlier,
    bool_or(deliveries.outcome = 'accepted') OVER (PARTITION BY resend_id) AS is_accepted
  FROM sent JOIN deliveries ON deliveries.id = sent.id
)
UPDATE deliveries SET handled_at = now()
WHERE handled_at IS NULL AND id = ANY (ARRAY(
  SELECT id FROM deliveries
  WHERE id = ANY (ARRAY(
    SELECT id FROM found WHERE outcome NOT IN ('accepted', 'in_flight') AND (is_accepted OR is_earlier)
  ))
  ORDER BY id FOR NO KEY UPDATE
))
