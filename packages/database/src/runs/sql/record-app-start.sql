-- Checks a start of a person by the rules of the public API and records it. The session's row is locked by the
--   statement before, so that numbers are in commit order.
-- By hand: one snapshot decides over the workflow, its trigger and the session.
-- Parameters: $1 organization, $2 run, $3 workflow, $4 whether the session is new, $5 session, $6 context, $7 user or
--   null, $8 request id, $9 member or null, $10 and $11 the trace. Rows: one.
WITH checked AS MATERIALIZED (
  SELECT workflow.name, trigger.id AS trigger_id, trigger.input_message,
    CASE
      WHEN organization.is_suspended THEN 'organization_suspended'
      WHEN workflow.id IS NULL THEN 'workflow_not_found'
      :WORKFLOW_REFUSALS
      WHEN NOT $4 AND (session.id IS NULL OR NOT :IS_SESSION_VISIBLE) THEN 'session_not_found'
      WHEN NOT $4 AND NOT session.is_open THEN 'session_closed'
      ELSE 'accepted'
    END AS kind
  FROM organizations AS organization
  LEFT JOIN workflows AS workflow
    ON workflow.organization_id = organization.id AND workflow.id = $3 AND :IS_VISIBLE
  :JOIN_API_TRIGGER
  LEFT JOIN sessions AS session ON session.organization_id = organization.id AND session.id = $5
  WHERE organization.id = $1
),
opened AS (
  INSERT INTO sessions (id, organization_id, last_start_number, waiting_since)
  SELECT $5, $1, 1, now() FROM checked WHERE kind = 'accepted' AND $4
),
counted AS (
  UPDATE sessions SET
    last_start_number = last_start_number + 1,
    last_used_at = now(),
    waiting_since = CASE WHEN last_finished_number < last_start_number THEN waiting_since
      ELSE greatest(now(), waiting_since) END
  FROM checked WHERE kind = 'accepted' AND NOT $4 AND sessions.id = $5
  RETURNING last_start_number
),
recorded AS (
  INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, trigger_id, input_message,
    user_id, request_id, traceparent, tracestate)
  SELECT $2, $1, $3, $5, coalesce((SELECT last_start_number FROM counted), 1), 'app', $6, trigger_id, input_message,
    $7, $8, $10, $11
  FROM checked WHERE kind = 'accepted'
)
SELECT kind, name FROM checked
