-- Moves a session past a start that was cancelled, or deleted with its workflow. By hand: it belongs to claim-next-run.
-- Parameters: $1 owner, $2 session, $3 epoch, $4 number of the start. Rows: none.
UPDATE sessions SET last_finished_number = $4,
  waiting_since = CASE WHEN last_start_number > $4 THEN now() END
WHERE id = $2 AND lease_epoch = $3 AND lease_owner = $1 AND last_finished_number = $4 - 1
  AND NOT EXISTS (SELECT FROM starts WHERE session_id = $2 AND number = $4 AND finished_at IS NULL)
