-- Renews the leases of a runner without waiting: a row that stays locked would let all leases of the runner expire.
-- By hand: one statement for all leases, with SKIP LOCKED.
-- Parameters: $1 owner, $2 duration of the lease in ms, $3 sessions, $4 epochs. Rows: the leases that are still the
--   owner's.
WITH lease AS MATERIALIZED (
  SELECT * FROM unnest($3::uuid[], $4::bigint[]) AS lease (session_id, epoch)
),
locked AS MATERIALIZED (
  SELECT id, lease_epoch FROM sessions
  WHERE id = ANY ($3::uuid[]) AND lease_owner = $1
  FOR NO KEY UPDATE SKIP LOCKED
),
renewed AS (
  UPDATE sessions SET lease_until = clock_timestamp() + $2 * interval '1 millisecond'
  WHERE id = ANY (ARRAY(
    SELECT locked.id FROM locked
    JOIN lease ON lease.session_id = locked.id AND lease.epoch = locked.lease_epoch
  ))
  RETURNING id
)
SELECT lease.session_id AS "sessionId", lease.epoch::float8 AS epoch, renewed.id IS NOT NULL AS "isRenewed"
FROM lease
JOIN sessions ON sessions.id = lease.session_id AND sessions.lease_epoch = lease.epoch AND sessions.lease_owner = $1
LEFT JOIN renewed ON renewed.id = lease.session_id
