-- Deletes sessions without runs that were not used for long.
-- By hand: `locked` compares columns of the session's row, which PostgreSQL reads again under the lock: a start that
--   was recorded since the snapshot, which does not show it, has changed last_used_at.
-- Parameters: $1 age in days, $2 organization, $3 and $4 the position after which the batch begins, $5 limit. Rows:
--   one, unless nothing was read.
WITH read AS MATERIALIZED (
  SELECT id, created_at FROM sessions
  WHERE organization_id = $2 AND created_at < now() - make_interval(days => $1) AND (created_at, id) > ($3, $4)
  ORDER BY created_at, id LIMIT $5
),
batch AS MATERIALIZED (
  SELECT read.*, row_number() OVER (ORDER BY created_at, id) AS position FROM read
),
locked AS MATERIALIZED (
  SELECT id FROM sessions
  WHERE id = ANY (ARRAY(
      SELECT id FROM batch WHERE (SELECT true FROM starts WHERE session_id = batch.id LIMIT 1) IS NULL
    ))
    AND last_used_at < now() - make_interval(days => $1)
    AND last_finished_number = last_start_number AND lease_owner IS NULL
  FOR UPDATE SKIP LOCKED
),
deleted AS (
  DELETE FROM sessions WHERE id = ANY (ARRAY(SELECT id FROM locked)) RETURNING id
)
:LAST_OF_BATCH
