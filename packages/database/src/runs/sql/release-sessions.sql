-- Releases sessions whose run was interrupted between two steps, and queues the run again. A parked session waits for
--   its time.
-- By hand: one statement for many sessions. The condition with ANY keeps PostgreSQL from reading all running starts,
--   which it prefers while the table is empty.
-- Parameters: $1 owner, $2 sessions, $3 epochs, $4 for how long to park each in ms, or null. Rows: none.
WITH lease AS MATERIALIZED (
  SELECT * FROM unnest($2::uuid[], $3::bigint[], $4::float8[]) AS lease (session_id, epoch, parked_ms)
),
locked AS MATERIALIZED (
  SELECT id, lease_epoch, last_finished_number + 1 AS number FROM sessions
  WHERE id = ANY ($2::uuid[]) AND lease_owner = $1
  ORDER BY id FOR NO KEY UPDATE
),
released AS MATERIALIZED (
  SELECT locked.id, locked.number, lease.parked_ms FROM locked
  JOIN lease ON lease.session_id = locked.id AND lease.epoch = locked.lease_epoch
),
queued AS (
  UPDATE starts SET status = 'queued', attempts = attempts - 1
  FROM released
  WHERE starts.session_id = ANY ($2::uuid[]) AND starts.session_id = released.id
    AND starts.number = released.number AND starts.status = 'running'
)
UPDATE sessions SET lease_owner = NULL, lease_until = NULL,
  waiting_since = CASE WHEN parked_ms IS NULL THEN waiting_since
    ELSE clock_timestamp() + parked_ms * interval '1 millisecond' END
FROM released WHERE sessions.id = ANY (ARRAY(SELECT id FROM released)) AND sessions.id = released.id
