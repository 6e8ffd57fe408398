-- Increments the attempts of the run that is under way. By hand: checks the lease in the same statement.
-- Parameters: $1 owner, $2 session, $3 epoch. Rows: one if the lease is the owner's.
WITH leased AS MATERIALIZED (
  SELECT id, last_finished_number + 1 AS number FROM sessions
  WHERE id = $2 AND lease_epoch = $3 AND lease_owner = $1
  FOR NO KEY UPDATE
)
UPDATE starts SET attempts = attempts + 1 FROM leased
WHERE starts.session_id = leased.id AND starts.number = leased.number AND starts.status = 'running'
RETURNING starts.attempts
