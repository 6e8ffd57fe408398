-- Finds a delivery of any organization, with its age by the database's clock.
-- By hand: the runner asks for it while a request is under way.
-- Parameters: $1 id. Rows: at most one.
SELECT id, organization_id, source_id, kind, outcome, status, reason, mismatches, duration_ms, answer, request_body,
  session_id, run_id, request_id, created_at, finished_at, resend_of, sent_by,
  (1000 * extract(epoch FROM clock_timestamp() - created_at))::float8 AS "ageMs"
FROM deliveries WHERE id = $1
