-- What a deletion returns: the last row of its `batch`, after which the next batch begins, how many of `deleted`
--   there are, and whether the batch has all rows that are left (`isLast`). A fragment.
SELECT created_at AS "createdAt", id, (SELECT count(*)::integer FROM deleted) AS deleted,
  position < $5 AND position = (SELECT count(*) FROM read) AS "isLast"
FROM batch ORDER BY position DESC LIMIT 1
