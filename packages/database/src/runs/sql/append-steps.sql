-- Appends steps to journals, each only under its own lease. The sessions are locked, so that the next owner of a
--   lease reads either none of the steps or all.
-- By hand: the bench's runs; one statement for a batch. Repeating it does no harm.
-- Parameters: $1 owner; lists, one entry for each step: $2 sessions, $3 epochs, $4 runs, $5 positions, $6 kinds, $7
--   data, $8 earlier steps in the same row. Rows: the leases that are the owner's.
WITH step AS MATERIALIZED (
  SELECT * FROM unnest($2::uuid[], $3::bigint[], $4::uuid[], $5::integer[], $6::text[], $7::text[], $8::text[])
    AS step (session_id, epoch, run_id, position, kind, data, earlier_steps)
),
leased AS MATERIALIZED (
  SELECT id, lease_epoch FROM sessions
  WHERE id = ANY ($2::uuid[]) AND lease_owner = $1
  ORDER BY id FOR NO KEY UPDATE
),
appended AS (
  INSERT INTO run_steps (run_id, position, kind, data, earlier_steps, epoch)
  SELECT step.run_id, step.position, step.kind, step.data::json, step.earlier_steps::json, step.epoch
  FROM step JOIN leased ON leased.id = step.session_id AND leased.lease_epoch = step.epoch
  WHERE (SELECT true FROM run_steps WHERE run_id = step.run_id AND position = step.position) IS NULL
)
SELECT id AS "sessionId", lease_epoch::float8 AS epoch FROM leased
