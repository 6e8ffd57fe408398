-- Searches workflows, in the order of the list. The search index finds rare matches fast, but all of them have to be
--   read and sorted; frequent matches are found faster along the list. Hence:
-- 1. `near` reads the next 250 rows of the list. Often these fill the page, or the list ends there.
-- 2. Otherwise, if they contain at least 4 matches, `further` continues along the list until the page is full.
-- 3. Otherwise `rare` reads all matches from the search index.
-- By hand: the bench's search. PostgreSQL does not execute a step whose condition on `counts` is false.
-- Parameters: $1 organization, $2 and $3 the position after which the page begins, $4 limit, $5 folded search. Rows:
--   the page.
WITH near AS MATERIALIZED (
  SELECT id, created_at, version, strpos(search_text, $5) > 0 AS is_match FROM workflows
  WHERE organization_id = $1 AND (created_at, id) > ($2, $3) AND deleted_at IS NULL
  ORDER BY created_at, id LIMIT 250
),
counts AS MATERIALIZED (
  SELECT count(*) FILTER (WHERE is_match) >= 4 AS is_frequent,
    count(*) FILTER (WHERE is_match) < $4 AND count(*) = 250 AS is_open,
    max(created_at) AS last_created_at, (array_agg(id ORDER BY created_at DESC, id DESC))[1] AS last_id
  FROM near
),
further AS (
  SELECT id, created_at, version FROM workflows
  WHERE (SELECT is_open AND is_frequent FROM counts)
    AND organization_id = $1
    AND (created_at, id) > ((SELECT last_created_at FROM counts), (SELECT last_id FROM counts))
    AND deleted_at IS NULL
    AND strpos(search_text, $5) > 0
  ORDER BY created_at, id LIMIT $4
),
candidate AS MATERIALIZED (
  SELECT id, created_at, version, search_text FROM workflows
  WHERE (SELECT is_open AND NOT is_frequent FROM counts)
    AND workflow_search_grams(organization_id, search_text, 1)
      @> (SELECT workflow_search_grams($1, $5, least(char_length($5), 3)))
    AND organization_id = $1 AND deleted_at IS NULL
),
rare AS (
  SELECT id, created_at, version FROM candidate
  WHERE (created_at, id) > ((SELECT last_created_at FROM counts), (SELECT last_id FROM counts))
    AND strpos(search_text, $5) > 0
  ORDER BY created_at, id LIMIT $4
)
SELECT id, created_at AS "createdAt",
  version || ' ' || (SELECT users_version FROM organizations WHERE id = $1) AS version
FROM (
  SELECT id, created_at, version FROM near WHERE is_match
  UNION ALL SELECT id, created_at, version FROM further
  UNION ALL SELECT id, created_at, version FROM rare
) AS page
ORDER BY created_at, id LIMIT $4
