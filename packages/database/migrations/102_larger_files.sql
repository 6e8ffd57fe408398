-- Up Migration

-- A PDF or an image has up to 3 MiB, which are 4 MiB in base64. That a text has at most 1 MiB, its writers check.
-- NOT VALID: the rows satisfy the narrower constraint, and a scan would lock the table.
ALTER TABLE files
  DROP CONSTRAINT files_content_check,
  ADD CONSTRAINT files_content_check CHECK (octet_length(content) <= 4194304) NOT VALID;
