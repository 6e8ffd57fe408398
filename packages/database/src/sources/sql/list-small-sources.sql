-- Reads the sources of organizations whose sources are few and small.
-- By hand: for the runner; the same sources as an acquisition of sessions reads.
-- Parameters: $1 organizations. Rows: one for each organization that has few and small ones, or none.
SELECT organization_id AS "organizationId", sources FROM (
  :SMALL_SOURCES
) AS small
