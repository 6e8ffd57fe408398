-- Up Migration

-- What dates such as "today" refer to. Null of cases that are older than this column: created_at.
ALTER TABLE cases ADD COLUMN accepted_at timestamptz(3);
-- The version of the case that was tried. Null of what the previous release has tried.
ALTER TABLE evaluation_results ADD COLUMN case_version uuid;
