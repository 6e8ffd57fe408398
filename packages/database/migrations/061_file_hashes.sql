-- Up Migration

-- The hash of a content, for the versions of workflows. It is that of the present content while hashed_version is the
-- file's version, which every write of a content changes.
ALTER TABLE files
  ADD COLUMN sha256         text,
  ADD COLUMN hashed_version uuid;
