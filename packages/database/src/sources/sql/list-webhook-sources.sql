-- Lists the sources of an organization that are not deleted, by name in code point order.
-- By hand: for the dispatcher, which does without Prisma.
-- Parameters: $1 organization. Rows: one for each source.
SELECT :COLUMNS FROM webhook_sources
WHERE organization_id = $1 AND deleted_at IS NULL ORDER BY name COLLATE "C", id
