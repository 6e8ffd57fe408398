-- Finds a source that is not deleted. By hand: for the dispatcher, which does without Prisma.
-- Parameters: $1 organization, $2 source. Rows: at most one.
SELECT :COLUMNS, signing_secret AS "signingSecret" FROM webhook_sources
WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL
