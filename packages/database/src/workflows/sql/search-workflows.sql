-- Searches the workflows that a person sees, in the order of the list. The search index finds rare matches fast, but
--   all of them have to be read and sorted; frequent matches are found faster along the list. Hence:
-- 1. `near` reads the next 250 rows of the list. Often these fill the page, or the list ends there.
-- 2. Otherwise, if they contain at least 4 matches that the person sees, `further` continues along the list until the
--   page is full.
-- 3. Otherwise, if the text is frequent, a member sees few workflows: `listed` reads those that list the member, each
--   by its id, and `company_wide` continues along the list of the others.
-- 4. Otherwise `rare` reads all matches from the search index.
-- By hand: the bench's search. PostgreSQL does not execute a step whose condition on `counts` is false.
-- Parameters: $1 organization, $2 and $3 the position after which the page begins, $4 limit, $5 folded search; empty:
--   the list; $6 member or null. Rows: the page.
WITH near AS MATERIALIZED (
  SELECT id, created_at, version, strpos(search_text, $5) > 0 AS has_text, :IS_VISIBLE AS is_visible
  FROM workflows
  WHERE organization_id = $1 AND (created_at, id) > ($2, $3) AND deleted_at IS NULL
  ORDER BY created_at, id LIMIT 250
),
counts AS MATERIALIZED (
  SELECT count(*) FILTER (WHERE has_text AND is_visible) >= 4 AS is_frequent,
    count(*) FILTER (WHERE has_text) >= 4 AS is_frequent_text,
    count(*) FILTER (WHERE has_text AND is_visible) < $4 AND count(*) = 250 AS is_open,
    max(created_at) AS last_created_at, (array_agg(id ORDER BY created_at DESC, id DESC))[1] AS last_id
  FROM near
),
further AS (
  SELECT id, created_at, version FROM workflows
  WHERE (SELECT is_open AND is_frequent FROM counts)
    AND organization_id = $1
    AND (created_at, id) > ((SELECT last_created_at FROM counts), (SELECT last_id FROM counts))
    AND strpos(search_text, $5) > 0 AND :IS_VISIBLE
  ORDER BY created_at, id LIMIT $4
),
membership AS MATERIALIZED (
  SELECT workflow_id FROM workflow_users
  WHERE (SELECT is_open AND NOT is_frequent AND is_frequent_text FROM counts) AND user_id = $6
),
listed AS (
  SELECT workflow.id, workflow.created_at, workflow.version
  FROM membership
  CROSS JOIN LATERAL (SELECT * FROM workflows WHERE id = membership.workflow_id LIMIT 1) AS workflow
  WHERE workflow.organization_id = $1 AND workflow.scope <> 'company_wide' AND workflow.deleted_at IS NULL
    AND (workflow.created_at, workflow.id) > ((SELECT last_created_at FROM counts), (SELECT last_id FROM counts))
    AND strpos(workflow.search_text, $5) > 0
  ORDER BY workflow.created_at, workflow.id LIMIT $4
),
company_wide AS (
  SELECT id, created_at, version FROM workflows
  WHERE (SELECT is_open AND NOT is_frequent AND is_frequent_text FROM counts)
    AND organization_id = $1 AND scope = 'company_wide' AND deleted_at IS NULL
    AND (created_at, id) > ((SELECT last_created_at FROM counts), (SELECT last_id FROM counts))
    AND strpos(search_text, $5) > 0
  ORDER BY created_at, id LIMIT $4
),
candidate AS MATERIALIZED (
  SELECT * FROM workflows
  WHERE (SELECT is_open AND NOT is_frequent AND NOT is_frequent_text FROM counts)
    AND workflow_search_grams(organization_id, search_text, 1)
      @> (SELECT workflow_search_grams($1, $5, least(char_length($5), 3)))
    AND organization_id = $1
),
rare AS (
  SELECT id, created_at, version FROM candidate
  WHERE (created_at, id) > ((SELECT last_created_at FROM counts), (SELECT last_id FROM counts))
    AND strpos(search_text, $5) > 0 AND :IS_CANDIDATE_VISIBLE
  ORDER BY created_at, id LIMIT $4
)
SELECT id, created_at AS "createdAt",
  version || ' ' || (SELECT users_version FROM organizations WHERE id = $1) AS version
FROM (
  SELECT id, created_at, version FROM near WHERE has_text AND is_visible
  UNION ALL SELECT * FROM further
  UNION ALL SELECT * FROM listed
  UNION ALL SELECT * FROM company_wide
  UNION ALL SELECT * FROM rare
) AS page
ORDER BY created_at, id LIMIT $4
