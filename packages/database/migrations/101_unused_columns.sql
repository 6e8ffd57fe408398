-- Up Migration

-- safe: no release has read or written them.
ALTER TABLE model_keys DROP COLUMN test_requested_at, DROP COLUMN tested_at, DROP COLUMN test_error;
