-- Up Migration

-- A key is answered for its 24 hours although its run was deleted: a repeated request must not start another one.
ALTER TABLE idempotency_keys DROP CONSTRAINT IF EXISTS idempotency_keys_start_id_fkey;
