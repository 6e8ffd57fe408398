-- Records that failed deliveries need no attention: a resend whose outcome is known now stands for their payload, or
--   the payload was accepted.
-- By hand: recursive, and each payload is read once, however many of its resends are given: the latest of them has all
--   that the others have. LATERAL with OFFSET reads the index: a join may compare each with each. It locks in the
--   order of the ids, as a person who marks them as done does.
-- Parameters: $1 resends. Rows: none.
WITH RECURSIVE up AS (
  SELECT id AS resend_id, created_at AS resent_at, id, resend_of AS parent, 0 AS depth FROM deliveries
  WHERE id = ANY ($1::uuid[])
  UNION ALL
  SELECT up.resend_id, up.resent_at, deliveries.id, deliveries.resend_of, depth + 1
  FROM up JOIN deliveries ON deliveries.id = up.parent WHERE depth < 100
),
first AS (
  SELECT DISTINCT ON (resend_id) resend_id, resent_at, id FROM up ORDER BY resend_id, depth DESC
),
latest AS (
  SELECT DISTINCT ON (id) id AS first_id, resend_id, resent_at FROM first ORDER BY id, resent_at DESC, resend_id DESC
),
sent AS (
  SELECT latest.*, first_id AS id, 0 AS depth FROM latest
  UNION ALL
  SELECT first_id, resend_id, resent_at, resend.id, depth + 1
  FROM sent CROSS JOIN LATERAL (SELECT id FROM deliveries WHERE resend_of = sent.id OFFSET 0) AS resend
  WHERE depth < 100
),
found AS (
  SELECT deliveries.id, deliveries.outcome,
    (deliveries.created_at, deliveries.id) < (resent_at, resend_id) AS is_earlier,
    bool_or(deliveries.outcome = 'accepted') OVER (PARTITION BY first_id) AS is_accepted
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
