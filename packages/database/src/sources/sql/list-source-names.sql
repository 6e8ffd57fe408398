-- Lists the names of the sources that are not deleted, in code point order. By hand: for the runner, which does
--   without Prisma.
-- Parameters: $1 organization. Rows: one for each source.
SELECT id, name FROM webhook_sources
WHERE organization_id = $1 AND deleted_at IS NULL ORDER BY name COLLATE "C", id
