-- Deletes old entries of the audit log. By hand: ids are made a little before or after `at`; the id only keeps the
--   search short.
-- Parameters: $1 the first id that is too new, $2 age in days, $3 limit. Rows: none.
DELETE FROM audit_events WHERE id = ANY (ARRAY(
  SELECT id FROM audit_events WHERE id < $1 AND at < now() - make_interval(days => $2)
  ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED
))
