-- Up Migration

-- The payload as the person who approved it has edited it; null: as the agent made it.
ALTER TABLE approvals ADD COLUMN edited_body json;
-- What waits, oldest first.
-- safe: people decide on each row, so the table is small, and an approval is requested once for a payload.
CREATE INDEX approvals_waiting ON approvals (organization_id, requested_at, delivery_id) WHERE status = 'waiting';
