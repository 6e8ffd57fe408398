-- Reads what refuses a save of a source. By hand: for the dispatcher, which does without Prisma.
-- Parameters: $1 organization, $2 source, $3 key of its name. Rows: one.
SELECT CASE
  WHEN NOT EXISTS (SELECT FROM organizations WHERE id = $1 AND deleted_at IS NULL) THEN 'no_organization'
  WHEN EXISTS (
    SELECT FROM webhook_sources WHERE id = $2 AND (organization_id <> $1 OR deleted_at IS NOT NULL)
  ) THEN 'id_taken'
  WHEN EXISTS (
    SELECT FROM webhook_sources WHERE organization_id = $1 AND name_key = $3 AND deleted_at IS NULL AND id <> $2
  ) THEN 'name_taken'
END AS refusal
