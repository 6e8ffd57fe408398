-- Up Migration

ALTER TABLE usage_hours
  DROP CONSTRAINT usage_hours_kind_check,
  ADD CONSTRAINT usage_hours_kind_check
    CHECK (kind IN ('organization', 'workflow', 'webhook_source', 'api_key', 'model', 'lookup')) NOT VALID;
