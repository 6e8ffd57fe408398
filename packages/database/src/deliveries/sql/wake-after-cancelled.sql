-- Lets sessions go on that wait for the payload of a cancelled run, which has its outcome now, or was not sent.
-- By hand: one statement for the batch of outcomes.
-- Parameters: $1 sessions. Rows: none.
UPDATE sessions SET waiting_since = CASE WHEN last_finished_number < last_start_number THEN now() END
WHERE id = ANY ($1::uuid[]) AND lease_owner IS NULL AND waiting_since > now()
  AND (SELECT status = 'cancelled' FROM starts WHERE session_id = sessions.id AND number = last_finished_number)
