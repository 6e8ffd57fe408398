-- Reads workflow documents as JSON (contract README, "Resources"): users by email, triggers oldest first, their
--   sources by name with the built-in ones last, files by folder and name. The sorted columns are COLLATE "C", which
--   is code point order.
-- A `company_wide` workflow lists all users of the organization, for which the document has null: `everyone` reads
--   them once for all workflows, and only if the caller does not know them in their current version.
-- By hand: the bench's read of a workflow. Rows are converted by row_to_json and json_agg: with json_build_object,
--   documents cost PostgreSQL more time, and more bytes. LEFT JOIN looks each workflow up by its id: with JOIN, a plan
--   that was made on an empty table reads the whole table, because PostgreSQL estimates that `deleted_at IS NULL`
--   leaves one row.
-- Parameters: $1 JSON list of organization_id, workflow_id and the known users_version. Rows: one for each workflow
--   that exists.
WITH found AS MATERIALIZED (
  SELECT lookup.position, lookup.users_version AS known_users_version, workflow.*,
    workflow.version || ' ' || organization.users_version AS document_version,
    organization.users_version
  FROM ROWS FROM (json_to_recordset($1::json) AS (organization_id uuid, workflow_id uuid, users_version text))
    WITH ORDINALITY AS lookup (organization_id, workflow_id, users_version, position)
  LEFT JOIN workflows AS workflow
    ON workflow.organization_id = lookup.organization_id AND workflow.id = lookup.workflow_id
    AND workflow.deleted_at IS NULL
  JOIN organizations AS organization ON organization.id = lookup.organization_id
),
everyone AS MATERIALIZED (
  SELECT first_position, (
    SELECT coalesce(json_agg(item), '[]') FROM (
      SELECT email, trim(concat_ws(' ', nullif(first_name, ''), nullif(last_name, ''))) AS name
      FROM users WHERE users.organization_id = company.organization_id ORDER BY email
    ) AS item
  )::text AS users
  FROM (
    SELECT organization_id, min(position) AS first_position FROM found
    WHERE scope = 'company_wide' AND known_users_version IS DISTINCT FROM users_version
    GROUP BY organization_id
  ) AS company
)
SELECT found.position::integer AS position, found.document_version AS version,
  CASE found.scope WHEN 'company_wide' THEN found.users_version END AS "usersVersion",
  (SELECT users FROM everyone WHERE first_position = found.position) AS users, (
  SELECT row_to_json(document)::text FROM (
    SELECT found.id, found.name, found.description, found.scope, found.is_active,
      (
        SELECT row_to_json(item) FROM (
          SELECT found.auto_run_enabled AS enabled, found.auto_run_frequency AS frequency
        ) AS item
      ) AS auto_run,
      CASE found.scope
        WHEN 'company_wide' THEN NULL
        ELSE (
          SELECT coalesce(json_agg(item), '[]') FROM (
            SELECT email, trim(concat_ws(' ', nullif(first_name, ''), nullif(last_name, ''))) AS name
            FROM workflow_users JOIN users ON users.id = workflow_users.user_id
            WHERE workflow_users.workflow_id = found.id ORDER BY email
          ) AS item
        )
      END AS users,
      :TRIGGERS AS triggers,
      (
        SELECT coalesce(json_agg(item), '[]') FROM (
          SELECT id, name, path FROM files WHERE files.workflow_id = found.id ORDER BY path, name
        ) AS item
      ) AS files,
      to_char(found.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS created_at,
      to_char(found.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS updated_at
  ) AS document
) AS json
FROM found WHERE found.id IS NOT NULL
