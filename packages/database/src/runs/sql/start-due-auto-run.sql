-- Starts a scheduled run. Of several runners, the one whose UPDATE still finds the due time starts it. The schedule
--   of an inactive workflow or a suspended organization advances without a run. A workflow whose row is locked, as by
--   "wf apply", stays due: the wait would hold up those behind it.
-- By hand: advances the schedule, opens the session and records the start in one statement.
-- Parameters: $1 organization, $2 workflow, $3 due time, $4 next time, $5 session, $6 start, $7 context, $8 request
--   id. Rows: one if it was started.
WITH unlocked AS (
  SELECT id FROM workflows WHERE organization_id = $1 AND id = $2 AND auto_run_next_at = $3
  FOR NO KEY UPDATE SKIP LOCKED
),
due AS (
  UPDATE workflows SET auto_run_next_at = $4 FROM unlocked
  WHERE workflows.organization_id = $1 AND workflows.id = unlocked.id AND workflows.auto_run_next_at = $3
  RETURNING workflows.organization_id, workflows.id, workflows.is_active
),
allowed AS (
  SELECT due.organization_id, due.id FROM due
  JOIN organizations ON organizations.id = due.organization_id
  WHERE due.is_active AND NOT organizations.is_suspended
),
opened AS (
  INSERT INTO sessions (id, organization_id, last_start_number, waiting_since)
  SELECT $5, organization_id, 1, now() FROM allowed
)
INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id)
SELECT $6, organization_id, id, $5, 1, 'auto_run', $7, $8 FROM allowed
RETURNING id
