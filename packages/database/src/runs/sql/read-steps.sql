-- Reads the journals of runs. By hand: the runner reads it when it resumes a run or continues a session.
-- Parameters: $1 runs. Rows: the steps, by run and position.
SELECT run_id AS "runId", position, kind, data, earlier_steps AS "earlierSteps", created_at AS "createdAt"
FROM run_steps
WHERE run_id = ANY ($1::uuid[]) ORDER BY run_id, position
