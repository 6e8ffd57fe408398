-- Up Migration

-- Both statements change no row: PostgreSQL keeps the value for the rows that exist beside the table. They count as used when
-- this migration was applied.
ALTER TABLE sessions
  -- When the session was opened, or got its last start.
  ADD COLUMN last_used_at timestamptz(3) NOT NULL DEFAULT now();

-- How far the deletion of old journals has come in the runs of an organization, in the order of the index starts_list.
CREATE TABLE retention_progress (
  organization_id uuid PRIMARY KEY REFERENCES organizations ON DELETE CASCADE,
  created_at      timestamptz(3) NOT NULL,
  run_id          uuid NOT NULL
);
