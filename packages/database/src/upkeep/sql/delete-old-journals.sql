-- Deletes the journals of old runs, and remembers how far it came.
-- By hand: the row of retention_progress is locked, so that two processes do not delete the same journals: the second
--   one finds nothing.
-- Parameters: $1 age in days, $2 organization, $3 and $4 the position after which the batch begins, $5 limit. Rows:
--   one, unless nothing was read.
WITH progress AS MATERIALIZED (
  SELECT created_at, run_id FROM retention_progress WHERE organization_id = $2
    AND (created_at, run_id) >= ($3, $4) FOR UPDATE SKIP LOCKED
),
:OLD_RUNS,
deleted AS (
  DELETE FROM run_steps WHERE run_id = ANY (ARRAY(SELECT id FROM batch WHERE has_ended)) RETURNING run_id
),
deleted_prompts AS (
  DELETE FROM run_prompts WHERE run_id = ANY (ARRAY(SELECT id FROM batch WHERE has_ended))
),
advanced AS (
  UPDATE retention_progress SET (created_at, run_id) = (SELECT created_at, id FROM batch ORDER BY position DESC LIMIT 1)
  WHERE organization_id = $2 AND (SELECT true FROM batch LIMIT 1)
)
:LAST_OF_BATCH
