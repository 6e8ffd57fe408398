-- Records the outcomes of deliveries: replaces `in_flight`, and `unknown` when the real outcome arrives late.
-- By hand: the bench's deliveries; one statement for a batch.
-- Parameters, each a list: $1 ids, $2 organizations, $3 outcomes, $4 statuses, $5 reasons, $6 durations, $7
--   answers, $8 rejected answers, $9 mismatches, $10 headers of answers. Rows: one for each delivery that was written.
WITH result AS (
  SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::integer[], $5::text[], $6::integer[], $7::text[],
      $8::text[], $9::text[], $10::text[])
    AS result (id, organization_id, outcome, status, reason, duration_ms, answer, rejected_answer, mismatches,
      answer_headers)
)
UPDATE deliveries :SET_OUTCOME
RETURNING deliveries.id, deliveries.finished_at AS "finishedAt", deliveries.resend_of IS NOT NULL AS "isResend"
