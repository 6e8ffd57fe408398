-- Up Migration

-- The address with its case folded in full (`foldCase`), where that differs from lower(), which folds ASCII letters
-- only: NULL for almost all. No collation of PostgreSQL folds so on every machine, so the services write it. A service
-- of the previous release leaves it as it is; `foldEmails` makes up for that, and for the rows from before.
ALTER TABLE users ADD COLUMN email_key text COLLATE "C";

-- It replaces users_email, which the release after this one drops.
-- safe: an organization has few users, and writers of this table are people.
CREATE UNIQUE INDEX users_email_key ON users (organization_id, coalesce(email_key, lower(email))) WHERE NOT is_duplicate;

-- The rows that `foldEmails` reads.
-- safe: as above.
CREATE INDEX users_folded_email ON users (id) WHERE email_key IS NOT NULL OR octet_length(email) <> char_length(email);
