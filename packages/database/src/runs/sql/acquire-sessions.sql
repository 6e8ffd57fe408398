-- Leases those of some sessions that are free: each has work and no lease, or one that expired by the database's
--   clock, is not parked (its `waiting_since` is not in the future), and its organization is not suspended.
-- By hand: the bench's runs; one round trip leases sessions and claims their first runs.
-- Parameters: $1 owner, $2 duration of the lease in ms, $3 slots, $4 the most sessions of an organization, $5 and $6
--   the organizations of which this runner has leased sessions and how many, $7 sessions. Rows: one.
WITH leased AS (
  SELECT * FROM unnest($5::uuid[], $6::integer[]) AS leased (organization_id, sessions)
),
candidate AS MATERIALIZED (
  SELECT id, organization_id, waiting_since, last_finished_number + 1 AS number FROM sessions
  WHERE id = ANY ($7::uuid[])
    AND last_finished_number < last_start_number
    AND (lease_until IS NULL OR lease_until < clock_timestamp())
    AND waiting_since <= clock_timestamp()
    AND NOT (SELECT is_suspended FROM organizations WHERE organizations.id = sessions.organization_id)
  FOR NO KEY UPDATE SKIP LOCKED
),
:LEASE_CANDIDATES
SELECT
  :ACQUIRED_COLUMNS
