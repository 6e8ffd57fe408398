-- Counts the sessions that wait for a runner, and how long the first has waited. Parked ones and those of suspended
--   organizations wait on purpose. By hand: read for every scrape of the metrics, by the index sessions_with_work.
-- Parameters: none. Rows: one.
SELECT count(*)::integer AS sessions,
       (1000 * extract(epoch FROM clock_timestamp() - min(waiting_since)))::float8 AS "oldestWaitMs"
FROM sessions
WHERE last_finished_number < last_start_number
  AND (lease_until IS NULL OR lease_until < clock_timestamp())
  AND waiting_since <= clock_timestamp()
  AND NOT (SELECT is_suspended FROM organizations WHERE organizations.id = sessions.organization_id)
