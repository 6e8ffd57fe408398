-- Lists the runs of a session before one, the last first. By hand: the runner reads it in every run of a continued
--   session, and pg_column_size reads no large value.
-- Parameters: $1 organization, $2 session, $3 number of the run, $4 limit. Rows: one for each run that has ended,
--   with the size of its journal as it is stored.
SELECT starts.id AS "runId", starts.number::float8 AS number, workflows.name AS "workflowName",
  starts.input_message AS "inputMessage", starts.context, starts.status, starts.error,
  (SELECT coalesce(sum(pg_column_size(data) + coalesce(pg_column_size(earlier_steps), 0)), 0)
   FROM run_steps WHERE run_steps.run_id = starts.id)::float8 AS bytes
FROM starts JOIN workflows ON workflows.id = starts.workflow_id
WHERE starts.organization_id = $1 AND starts.session_id = $2 AND starts.number < $3
  AND starts.finished_at IS NOT NULL
ORDER BY starts.number DESC LIMIT $4
