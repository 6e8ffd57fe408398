-- Lists the files of a workflow by folder, then by name, in code point order.
-- By hand: the runner reads it in every run of a workflow with files, and does without Prisma.
-- Parameters: $1 organization, $2 workflow. Rows: one for each file.
SELECT files.id, files.name, files.path
FROM files JOIN workflows ON workflows.id = files.workflow_id
WHERE workflows.organization_id = $1 AND workflows.id = $2
ORDER BY files.path, files.name, files.id
