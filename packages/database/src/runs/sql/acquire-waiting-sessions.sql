-- Leases free sessions of any organization, for the sweep.
-- By hand: the recursive part goes from organization to organization along the index sessions_with_work, and
--   `candidate` reads the sessions of each that have waited longest: one organization with many waiting sessions does
--   not hide the others. It reads one session more than may be acquired, which shows whether there is more. now(), and
--   not clock_timestamp(), bounds the index, so that parked sessions are not read.
-- Parameters: $1 to $6 as in acquire-sessions, $7 the first organization, $8 how many organizations to visit, $9
--   runners that have ended: their leases end at once. Rows: one.
WITH RECURSIVE leased AS (
  SELECT * FROM unnest($5::uuid[], $6::integer[]) AS leased (organization_id, sessions)
),
organization (id, position) AS (
  (
    SELECT organization_id, 1 FROM sessions
    WHERE last_finished_number < last_start_number AND organization_id >= $7
    ORDER BY organization_id LIMIT 1
  )
  UNION ALL
  SELECT (
    SELECT organization_id FROM sessions
    WHERE last_finished_number < last_start_number AND organization_id > organization.id
    ORDER BY organization_id LIMIT 1
  ), position + 1
  FROM organization WHERE id IS NOT NULL AND position < $8
),
candidate AS MATERIALIZED (
  SELECT waiting.* FROM organization
  JOIN organizations ON organizations.id = organization.id AND NOT organizations.is_suspended
  LEFT JOIN leased ON leased.organization_id = organization.id
  CROSS JOIN LATERAL (
    SELECT id, organization_id, waiting_since, last_finished_number + 1 AS number FROM sessions
    WHERE organization_id = organization.id
      AND last_finished_number < last_start_number
      AND (lease_until IS NULL OR lease_until < clock_timestamp() OR lease_owner = ANY ($9::text[]))
      AND waiting_since <= now()
    ORDER BY waiting_since, id
    LIMIT 1 + greatest(0, least($3::bigint, $4::bigint - coalesce(leased.sessions, 0)))
    FOR NO KEY UPDATE SKIP LOCKED
  ) AS waiting
),
:LEASE_CANDIDATES
SELECT
  (SELECT id FROM organization WHERE position = $8) AS "lastOrganizationId",
  :ACQUIRED_COLUMNS
