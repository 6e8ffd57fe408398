-- Up Migration

-- Texts that people try a workflow with. A runner plans the run, sends nothing, and records here what it would send.
CREATE TABLE trials (
  id              uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  workflow_id     uuid NOT NULL REFERENCES workflows ON DELETE CASCADE,
  user_id         uuid NOT NULL,
  -- The session whose earlier runs the agent reads; null for none.
  session_id      uuid,
  context         text NOT NULL,
  -- A rules.yaml that is not saved, in place of the workflow's; null for that.
  rules           text,
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  attempts        integer NOT NULL DEFAULT 0,
  lease_until     timestamptz,
  finished_at     timestamptz(3),
  error           text,
  -- The journal of the planned run.
  steps           json NOT NULL DEFAULT '[]'
);
CREATE INDEX trials_pending ON trials (created_at) WHERE finished_at IS NULL;
-- A person's new trial replaces the earlier one.
CREATE UNIQUE INDEX trials_person ON trials (workflow_id, user_id);
CREATE INDEX trials_old ON trials (created_at);
CREATE INDEX trials_organization ON trials (organization_id);
