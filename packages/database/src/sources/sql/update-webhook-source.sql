-- Replaces the values of a source of this version. Another endpoint, or another mode, needs a first approval again.
-- By hand: for the dispatcher, which does without Prisma.
-- Parameters: $1 organization, $2 source, $3 name, $4 its key, $5 description, $6 URL, $7 encrypted secret, $8 example,
--   $9 approval mode, $10 whether it is verified, $11 whether $7 replaces the secret, $12 version.
-- Rows: the source as it is now; none when it has another version or is deleted.
UPDATE webhook_sources SET name = $3, name_key = $4, description = $5, endpoint_url = $6,
  signing_secret = CASE WHEN $11 THEN $7 ELSE signing_secret END, example_request_body = $8, approval = $9,
  verified_at = CASE WHEN $10 THEN now() END,
  approved_at = CASE WHEN endpoint_url = $6 AND approval = $9 THEN approved_at END,
  updated_at = now(), version = version + 1
WHERE organization_id = $1 AND id = $2 AND version = $12 AND deleted_at IS NULL
RETURNING :COLUMNS
