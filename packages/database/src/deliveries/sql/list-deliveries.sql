-- Lists the log of a source, newest first.
-- By hand: the bench's reads of the log. The filters on outcome and kind are part of the text, so that PostgreSQL
--   recognizes the partial index that serves each of them. Named: to plan the statement took a third of the time of a
--   page.
-- Parameters: $1 organization, $2 source, $3 since, $4 and $5 the position before which the page begins, $6 limit.
--   Rows: the page.
SELECT id, organization_id, source_id, kind, outcome, status, reason, mismatches, duration_ms, answer, request_body,
  session_id, run_id, request_id, created_at, finished_at, resend_of, sent_by, rejected_answer, answer_headers
FROM deliveries
WHERE organization_id = $1 AND source_id = $2
  AND created_at >= $3 AND (created_at, id) < ($4, $5)
  :FILTER
ORDER BY created_at DESC, id DESC LIMIT $6
