-- Inserts a new source. By hand: for the dispatcher, which does without Prisma.
-- Parameters: as of update-webhook-source.sql, $1 to $10.
-- Rows: the source; none when the organization was deleted, as while the endpoint answered. FOR SHARE: a deletion that
--   begins meanwhile waits, so that it deletes the source too.
INSERT INTO webhook_sources (organization_id, id, name, name_key, description, endpoint_url, signing_secret,
  example_request_body, approval, verified_at)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, CASE WHEN $10 THEN now() END
FROM organizations WHERE id = $1 AND deleted_at IS NULL FOR SHARE
RETURNING :COLUMNS
