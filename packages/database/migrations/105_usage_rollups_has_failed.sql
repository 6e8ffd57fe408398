-- Up Migration

-- Whether the counts of an organization failed in the hour: it is counted again, and keeps its rows until then.
ALTER TABLE usage_rollups ADD COLUMN has_failed boolean NOT NULL DEFAULT false;
