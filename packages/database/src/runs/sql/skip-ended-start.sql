-- Moves a session past a start that was cancelled, or deleted with its workflow. A start that was recorded while its
--   workflow was deleted for good is deleted here: no run of it can be claimed.
-- By hand: it belongs to claim-next-run.
-- Parameters: $1 owner, $2 session, $3 epoch, $4 number of the start. Rows: none.
WITH skipped AS (
  UPDATE sessions SET last_finished_number = $4,
    waiting_since = CASE WHEN last_start_number > $4 THEN now() END
  WHERE id = $2 AND lease_epoch = $3 AND lease_owner = $1 AND last_finished_number = $4 - 1
    AND NOT EXISTS (
      SELECT FROM starts JOIN workflows ON workflows.id = starts.workflow_id
      WHERE session_id = $2 AND number = $4 AND finished_at IS NULL
    )
  RETURNING id
)
DELETE FROM starts USING skipped
WHERE starts.session_id = skipped.id AND starts.number = $4 AND starts.finished_at IS NULL
