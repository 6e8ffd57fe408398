-- Finds a delivery of any organization, with its age by the database's clock.
-- By hand: the runner asks for it while a request is under way.
-- Parameters: $1 id. Rows: at most one.
SELECT id, organization_id AS "organizationId", source_id AS "sourceId", kind, outcome, status, reason, mismatches,
  duration_ms AS "durationMs", answer, request_body AS "requestBody", session_id AS "sessionId", run_id AS "runId",
  request_id AS "requestId", created_at AS "createdAt", finished_at AS "finishedAt",
  resend_of AS "resendOf", sent_by AS "sentBy",
  (1000 * extract(epoch FROM clock_timestamp() - created_at))::float8 AS "ageMs"
FROM deliveries WHERE id = $1
