-- Finishes runs, each only under its own lease, and claims each session's next start or releases the session.
-- By hand: the bench's runs; one statement for a batch. The counter that shows whether there is more work is on the
--   locked row, and is read by the statement that releases the session: a start that was recorded before is claimed,
--   a later one finds the session free. `advanced` depends on `finished`, and `claimed` on `advanced`, so that two
--   runs of a session are never `running` at once.
-- Parameters: $1 owner; lists: $2 sessions, $3 epochs, $4 numbers, $5 statuses, $6 errors, $7 whether to claim the
--   next start; $8 the most attempts. Rows: one for each run that was finished.
WITH ended AS MATERIALIZED (
  SELECT * FROM unnest($2::uuid[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::boolean[])
    AS ended (session_id, epoch, number, status, error, claims_next)
),
locked AS MATERIALIZED (
  SELECT id, organization_id, lease_epoch, last_finished_number + 1 AS number FROM sessions
  WHERE id = ANY ($2::uuid[]) AND lease_owner = $1
  ORDER BY id FOR NO KEY UPDATE
),
leased AS MATERIALIZED (
  SELECT ended.session_id, ended.number, ended.status, ended.error,
    ended.claims_next
      AND NOT (SELECT is_suspended FROM organizations WHERE organizations.id = locked.organization_id) AS claims_next
  FROM locked
  JOIN ended ON ended.session_id = locked.id AND ended.epoch = locked.lease_epoch AND ended.number = locked.number
),
finished AS (
  UPDATE starts SET status = leased.status, error = leased.error, finished_at = now(),
    not_succeeded_at = CASE WHEN leased.status <> 'succeeded' THEN now() END, attempts = least(attempts, $8)
  FROM leased WHERE starts.session_id = leased.session_id AND starts.number = leased.number
  RETURNING leased.*
),
advanced AS (
  UPDATE sessions SET
    last_finished_number = finished.number,
    waiting_since = CASE WHEN last_start_number > finished.number THEN now() END,
    lease_owner = CASE WHEN last_start_number > finished.number AND finished.claims_next THEN lease_owner END,
    lease_until = CASE WHEN last_start_number > finished.number AND finished.claims_next THEN lease_until END
  FROM finished WHERE sessions.id = finished.session_id
  RETURNING sessions.id, sessions.last_finished_number + 1 AS number, sessions.lease_owner IS NULL AS is_released
),
claimed AS (
  UPDATE starts SET status = 'running', attempts = attempts + 1, started_at = coalesce(started_at, now())
  FROM advanced
  WHERE NOT advanced.is_released AND starts.session_id = advanced.id AND starts.number = advanced.number
    AND starts.finished_at IS NULL
  RETURNING starts.*, now() AS claimed_at
)
SELECT advanced.id AS "sessionId", advanced.is_released AS "isReleased",
  CASE WHEN workflows.id IS NOT NULL THEN :CLAIMED_RUN END AS next
FROM advanced
LEFT JOIN claimed ON claimed.session_id = advanced.id
LEFT JOIN workflows ON workflows.id = claimed.workflow_id
