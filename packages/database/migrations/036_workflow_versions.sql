-- Up Migration

-- What each save made of a workflow: its task, triggers and files. The newest of each workflow are kept.
CREATE TABLE workflow_versions (
  id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  workflow_id uuid NOT NULL REFERENCES workflows ON DELETE CASCADE,
  number      integer NOT NULL,
  created_at  timestamptz(3) NOT NULL DEFAULT now(),
  -- Null: before versions were kept, or saved by a service of a release that does not keep them.
  saved_by    text,
  -- What differs from the version before.
  parts       text[] NOT NULL,
  -- Name, description, triggers, and files with the hashes of their contents.
  document    json NOT NULL,
  -- Contents of files that no earlier version had.
  bytes       bigint NOT NULL,
  UNIQUE (workflow_id, number)
);
-- Each content once.
CREATE TABLE workflow_version_files (
  workflow_id uuid NOT NULL REFERENCES workflows ON DELETE CASCADE,
  sha256      text NOT NULL,
  content     text NOT NULL,
  PRIMARY KEY (workflow_id, sha256)
);
