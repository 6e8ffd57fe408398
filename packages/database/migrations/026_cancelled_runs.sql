-- Up Migration

-- NOT VALID: the rows satisfy the narrower constraints, and a scan would lock large tables.
ALTER TABLE starts
  DROP CONSTRAINT starts_status_check,
  ADD CONSTRAINT starts_status_check
    CHECK (status IN ('queued', 'running', 'waiting', 'succeeded', 'failed', 'cancelled')) NOT VALID,
  DROP CONSTRAINT starts_check,
  ADD CONSTRAINT starts_check
    CHECK ((status IN ('succeeded', 'failed', 'cancelled')) = (finished_at IS NOT NULL)) NOT VALID,
  -- The user who stopped it; null: the operator.
  ADD COLUMN cancelled_by uuid,
  ADD COLUMN cancelled_by_name text;
