-- Up Migration

-- Finds the approvals that an edit of a source's URL ends.
-- safe: people decide on each row, so the table is small, and an approval is requested once for a payload.
CREATE INDEX approvals_source ON approvals (source_id) WHERE status IN ('waiting', 'approved');
