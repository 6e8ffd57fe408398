-- Up Migration

-- Texts that people keep of a workflow, with the payloads that are right for them.
CREATE TABLE cases (
  id              uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  workflow_id     uuid NOT NULL REFERENCES workflows ON DELETE CASCADE,
  -- The run that it was kept of: it is deleted when a person deletes the run. Null: it was written or tried.
  run_id          uuid,
  name            text NOT NULL,
  context         text NOT NULL,
  -- [{source_id, source_name, payload}]
  expected        json NOT NULL,
  version         uuid NOT NULL DEFAULT gen_random_uuid(),
  saved_by        uuid,
  saved_by_name   text NOT NULL,
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  -- Kept or evaluated: retention counts from here.
  used_at         timestamptz(3) NOT NULL DEFAULT now()
);
CREATE INDEX cases_workflow ON cases (workflow_id, created_at);
CREATE INDEX cases_organization ON cases (organization_id);
CREATE INDEX cases_run ON cases (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX cases_used ON cases (used_at);

-- What the cases of a workflow are tried with: one of its versions, where a draft may replace the task or the rules.
CREATE TABLE evaluations (
  id              uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  workflow_id     uuid NOT NULL REFERENCES workflows ON DELETE CASCADE,
  -- Null: the default of the runners.
  model           text,
  version_number  integer NOT NULL,
  description     text,
  rules           text,
  started_by      uuid,
  started_by_name text NOT NULL,
  created_at      timestamptz(3) NOT NULL DEFAULT now()
);
CREATE INDEX evaluations_workflow ON evaluations (workflow_id, created_at);
CREATE INDEX evaluations_organization ON evaluations (organization_id);
CREATE INDEX evaluations_old ON evaluations (created_at);

-- One for each case: first the work of a runner, then what it found.
CREATE TABLE evaluation_results (
  id              uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  evaluation_id   uuid NOT NULL REFERENCES evaluations ON DELETE CASCADE,
  case_id         uuid NOT NULL REFERENCES cases ON DELETE CASCADE,
  attempts        integer NOT NULL DEFAULT 0,
  -- Also: no runner begins before.
  lease_until     timestamptz,
  finished_at     timestamptz(3),
  -- Why the run would fail.
  error           text,
  payloads        json,
  differences     json,
  cost_micros     bigint,
  duration_ms     integer
);
CREATE INDEX evaluation_results_pending ON evaluation_results (organization_id, id) WHERE finished_at IS NULL;
CREATE INDEX evaluation_results_evaluation ON evaluation_results (evaluation_id);
CREATE INDEX evaluation_results_case ON evaluation_results (case_id);
