-- Records the outcomes of deliveries as record-delivery-outcomes does, with the result of each in the journal of its
--   run; an accepted payload that was all that was left to do ends the run and releases the session, unless the
--   session has a further start, which its runner claims.
-- By hand: the bench's deliveries; one statement for a batch. The sessions are locked first, as by the statements of
--   the runner, and the counters on their rows show whether there is more work.
-- Parameters, each a list: $1 to $10 as of record-delivery-outcomes, $11 sessions, $12 epochs, $13 runs, $14 data of
--   the results, $15 positions, $16 the number of the run in its session if it ends. Rows: one for each delivery that
--   was written.
WITH result AS MATERIALIZED (
  SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::integer[], $5::text[], $6::integer[], $7::text[],
      $8::text[], $9::text[], $10::text[], $11::uuid[], $12::bigint[], $13::uuid[], $14::text[], $15::integer[],
      $16::bigint[])
    AS result (id, organization_id, outcome, status, reason, duration_ms, answer, rejected_answer, mismatches,
      answer_headers, session_id, epoch, run_id, data, position, number)
),
locked AS MATERIALIZED (
  SELECT id, lease_epoch, last_finished_number + 1 AS number, last_start_number FROM sessions
  WHERE id = ANY ($11::uuid[]) AND lease_owner IS NOT NULL
  ORDER BY id FOR NO KEY UPDATE
),
recorded AS (
  UPDATE deliveries :SET_OUTCOME
  RETURNING deliveries.id, deliveries.finished_at
),
written AS (
  INSERT INTO run_steps (run_id, position, kind, data, epoch)
  SELECT result.run_id, result.position, 'tool_result', result.data::json, result.epoch
  FROM result JOIN recorded ON recorded.id = result.id
  JOIN locked ON locked.id = result.session_id AND locked.lease_epoch = result.epoch
  WHERE (SELECT true FROM run_steps WHERE run_id = result.run_id AND position = result.position) IS NULL
  RETURNING run_id, position
),
finished AS (
  UPDATE starts SET status = 'succeeded', error = NULL, finished_at = now()
  FROM result JOIN written ON written.run_id = result.run_id AND written.position = result.position
  JOIN locked ON locked.id = result.session_id AND locked.number = result.number
    AND locked.last_start_number = result.number
  WHERE starts.session_id = result.session_id AND starts.number = result.number AND starts.status = 'running'
  RETURNING starts.session_id, starts.number
),
released AS (
  UPDATE sessions SET last_finished_number = finished.number, waiting_since = NULL, lease_owner = NULL,
    lease_until = NULL
  FROM finished WHERE sessions.id = finished.session_id
  RETURNING sessions.id
)
SELECT recorded.id, recorded.finished_at AS "finishedAt", written.run_id IS NOT NULL AS "isWritten",
  released.id IS NOT NULL AS "isEnded"
FROM recorded JOIN result ON result.id = recorded.id
LEFT JOIN written ON written.run_id = result.run_id AND written.position = result.position
LEFT JOIN released ON released.id = result.session_id
