-- Up Migration

-- Before 1.0.0, this migration also created triggers that wrote versions, and 006 dropped them. A database of 1.0.0 has
-- run both.
ALTER TABLE organizations ADD COLUMN users_version text NOT NULL DEFAULT gen_random_uuid()::text;
