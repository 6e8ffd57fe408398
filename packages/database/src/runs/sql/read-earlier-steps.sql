-- Reads the journals of runs, as many as fit into limits: those of a run up to :RUN_MAX_BYTES, and :MAX_BYTES in all.
-- By hand: PostgreSQL knows the size of a compressed value only by reading it, so each is read once here, above the
--   sort, and counted as text.
-- Parameters: $1 runs, the most important first. Rows: the steps in this order, without data beyond the limits.
SELECT "runId", position, kind, "createdAt",
  CASE WHEN run_bytes <= :RUN_MAX_BYTES AND bytes <= :MAX_BYTES THEN data END AS data,
  CASE WHEN run_bytes <= :RUN_MAX_BYTES AND bytes <= :MAX_BYTES THEN earlier_steps END AS "earlierSteps"
FROM (
  SELECT *, sum(size) FILTER (WHERE run_bytes <= :RUN_MAX_BYTES) OVER (ORDER BY ordinality, position) AS bytes
  FROM (
    SELECT *, sum(size) OVER (PARTITION BY ordinality ORDER BY position) AS run_bytes
    FROM (
      SELECT *, octet_length(data) + coalesce(octet_length(earlier_steps), 0) AS size
      FROM (
        SELECT ordinality, run_id AS "runId", position, kind, created_at AS "createdAt", data::text AS data,
          earlier_steps::text AS earlier_steps
        FROM (
          SELECT ordinality, run_steps.* FROM unnest($1::uuid[]) WITH ORDINALITY AS run (id, ordinality)
          JOIN run_steps ON run_id = run.id ORDER BY ordinality, position
        ) AS sorted ORDER BY ordinality, position OFFSET 0
      ) AS step
    ) AS measured
  ) AS summed
) AS step ORDER BY ordinality, position
