-- Up Migration

ALTER TABLE webhook_sources
  ADD COLUMN approval    text NOT NULL DEFAULT 'none' CHECK (approval IN ('none', 'first', 'always')),
  -- When a payload was first accepted after an approval: with `first`, no approval is needed since.
  ADD COLUMN approved_at timestamptz(3);

-- NOT VALID: the rows satisfy the narrower constraints, and a scan would lock large tables.
ALTER TABLE starts
  DROP CONSTRAINT starts_status_check,
  ADD CONSTRAINT starts_status_check
    CHECK (status IN ('queued', 'running', 'waiting', 'succeeded', 'failed')) NOT VALID;
ALTER TABLE run_steps
  DROP CONSTRAINT run_steps_kind_check,
  ADD CONSTRAINT run_steps_kind_check CHECK (kind IN
    ('message', 'model_answer', 'tool_call', 'tool_result', 'approval_request', 'approval_decision', 'note')) NOT VALID;

-- A payload that a person must approve before it is sent. The dispatcher sends exactly this payload under this id.
CREATE TABLE approvals (
  delivery_id     uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  run_id          uuid NOT NULL REFERENCES starts ON DELETE CASCADE,
  source_id       uuid NOT NULL,
  -- The source's name when the approval was requested.
  source_name     text NOT NULL,
  request_body    json NOT NULL,
  status          text NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'approved', 'declined', 'expired')),
  -- Why it was declined.
  reason          text CHECK (char_length(reason) <= 1000),
  requested_at    timestamptz(3) NOT NULL DEFAULT now(),
  expires_at      timestamptz(3) NOT NULL,
  decided_at      timestamptz(3),
  -- The user; null: the operator, or it expired.
  decided_by      uuid,
  decided_by_name text,
  CHECK ((status = 'waiting') = (decided_at IS NULL))
);
CREATE INDEX approvals_run ON approvals (run_id);
