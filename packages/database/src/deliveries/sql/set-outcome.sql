-- What a `result` changes of its delivery: `in_flight`, or `unknown` when the real outcome arrives late. A fragment.
SET outcome = result.outcome, status = result.status, reason = result.reason,
  mismatches = result.mismatches::json, duration_ms = result.duration_ms, answer = result.answer,
  rejected_answer = result.rejected_answer, answer_headers = result.answer_headers::json, finished_at = now()
FROM result
WHERE deliveries.id = result.id AND deliveries.organization_id = result.organization_id
  AND CASE deliveries.outcome
    WHEN 'in_flight' THEN true
    WHEN 'unknown' THEN result.outcome <> 'unknown'
    ELSE false
  END
