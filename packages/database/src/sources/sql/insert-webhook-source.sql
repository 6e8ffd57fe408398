-- Inserts a new source. By hand: for the dispatcher, which does without Prisma.
-- Parameters: as of update-webhook-source.sql, $1 to $10. Rows: the source.
INSERT INTO webhook_sources (organization_id, id, name, name_key, description, endpoint_url, signing_secret,
  example_request_body, approval, verified_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, CASE WHEN $10 THEN now() END)
RETURNING :COLUMNS
