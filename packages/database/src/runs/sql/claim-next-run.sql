-- Claims the next start of a session under its lease. By hand: the bench's runs; the counters are in the locked row.
--   The time of the claim is taken after the lock, which may have waited until the run before ended.
-- Parameters: $1 owner, $2 session, $3 epoch. Rows: one if the lease is the owner's.
WITH leased AS MATERIALIZED (
  SELECT id, last_finished_number + 1 AS number, last_finished_number < last_start_number AS has_work
  FROM sessions
  WHERE id = $2 AND lease_epoch = $3 AND lease_owner = $1
  FOR NO KEY UPDATE
),
timed AS MATERIALIZED (
  SELECT *, clock_timestamp() AS claimed_at FROM leased
),
claimed AS (
  UPDATE starts SET status = 'running', attempts = attempts + 1, started_at = coalesce(started_at, claimed_at)
  FROM timed
  WHERE timed.has_work AND starts.session_id = timed.id AND starts.number = timed.number
    AND starts.finished_at IS NULL
  RETURNING starts.*, claimed_at
)
SELECT leased.number::float8 AS number, leased.has_work AS "hasWork",
  CASE WHEN workflows.id IS NOT NULL THEN :CLAIMED_RUN END AS run
FROM leased
LEFT JOIN claimed ON claimed.session_id = leased.id
LEFT JOIN workflows ON workflows.id = claimed.workflow_id
