-- Up Migration

-- Both statements change no row: PostgreSQL keeps the value for the rows that exist beside the table. They count as
-- used when this migration was applied.
ALTER TABLE sessions
  -- When the session was opened, or got its last start.
  ADD COLUMN last_used_at timestamptz(3) NOT NULL DEFAULT now();

-- How far the deletion of old journals has come in the runs of an organization, in the order of the index starts_list.
CREATE TABLE retention_progress (
  organization_id uuid PRIMARY KEY REFERENCES organizations ON DELETE CASCADE,
  created_at      timestamptz(3) NOT NULL,
  run_id          uuid NOT NULL
);

-- By default, PostgreSQL vacuums a table when a fifth of its rows is dead, and leaves its indexes as they are when less
-- than 2 % of the pages have dead rows. Each start leaves dead entries in the indexes that the sweeps read. With
-- 10,000,000 rows and 200 starts per second, a sweep read 893 pages of them when 100,000 rows were dead; with these
-- values 50 to 200, for a vacuum of 4 to 13 s each minute.
ALTER TABLE sessions SET (
  autovacuum_vacuum_scale_factor = 0.001, autovacuum_vacuum_threshold = 1000, vacuum_index_cleanup = on);
ALTER TABLE starts SET (
  autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, vacuum_index_cleanup = on);
ALTER TABLE deliveries SET (
  autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, vacuum_index_cleanup = on);
