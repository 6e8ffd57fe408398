-- Moves a session past a start that was cancelled, or deleted with its workflow, and past up to 1,000 of such starts
--   that follow it: thousands may have been cancelled while the run before them was under way. A start that was
--   recorded while its workflow was deleted for good is deleted here: no run of it can be claimed.
-- By hand: it belongs to claim-next-run. `past` ends at a start that this statement sees, not at last_start_number,
--   which is read again under the lock: a start that was recorded since the snapshot is not skipped.
-- Parameters: $1 owner, $2 session, $3 epoch, $4 number of the start. Rows: none.
WITH past AS MATERIALIZED (
  SELECT coalesce(min(number) FILTER (WHERE finished_at IS NULL) - 1, max(number), $4) AS number FROM (
    SELECT number, finished_at FROM starts WHERE session_id = $2 AND number > $4 ORDER BY number LIMIT 1000
  ) AS next
),
skipped AS (
  UPDATE sessions SET last_finished_number = past.number,
    waiting_since = CASE WHEN last_start_number > past.number THEN now() END
  FROM past
  WHERE id = $2 AND lease_epoch = $3 AND lease_owner = $1 AND last_finished_number = $4 - 1
    AND NOT EXISTS (
      SELECT FROM starts JOIN workflows ON workflows.id = starts.workflow_id
      WHERE session_id = $2 AND starts.number = $4 AND finished_at IS NULL
    )
  RETURNING id
)
DELETE FROM starts USING skipped
WHERE starts.session_id = skipped.id AND starts.number = $4 AND starts.finished_at IS NULL
