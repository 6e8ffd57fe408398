-- Up Migration

-- Of the event of an applied manifest: what it did not have, so that it was left as it was.
ALTER TABLE audit_events ADD COLUMN kept_fields text[] NOT NULL DEFAULT '{}';
