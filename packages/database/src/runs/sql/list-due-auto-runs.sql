-- Lists the workflows whose schedule is due. By hand: the list of all frequencies makes the index workflows_auto_run
--   usable, which begins with the frequency. now(), and not clock_timestamp(), bounds it.
-- Parameters: $1 the time, or null for the database's clock, $2 limit, $3 and $4 the due time and workflow after which
--   they begin. Rows: the workflows, first the one that is due for longest.
SELECT id AS "workflowId", organization_id AS "organizationId", auto_run_frequency AS frequency,
  auto_run_anchor_at AS "anchorAt", auto_run_timing AS timing, auto_run_next_at AS "dueAt",
  coalesce($1::timestamptz, now()) AS now
FROM workflows
WHERE auto_run_frequency IN ('hourly', 'daily', 'weekly', 'monthly')
  AND auto_run_next_at <= coalesce($1::timestamptz, now())
  AND (auto_run_next_at, id) > ($3, $4)
ORDER BY auto_run_next_at, id LIMIT $2
