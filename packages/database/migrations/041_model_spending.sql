-- Up Migration

-- Money is in millionths of the currency of the models' prices; null: no budget.
ALTER TABLE workflows
  ADD COLUMN run_budget bigint,
  ADD COLUMN day_budget bigint,
  -- Whether a run that reaches the budget of a day or month fails, or waits for the next one.
  ADD COLUMN when_spent text NOT NULL DEFAULT 'fail';
ALTER TABLE organizations ADD COLUMN month_budget bigint;

ALTER TABLE usage_hours
  ADD COLUMN cost_micros bigint NOT NULL DEFAULT 0,
  DROP CONSTRAINT usage_hours_kind_check,
  ADD CONSTRAINT usage_hours_kind_check
    CHECK (kind IN ('organization', 'workflow', 'webhook_source', 'api_key', 'model')) NOT VALID;

-- What answers of models have cost: of a workflow by day, and of the organization by month (UTC).
CREATE TABLE model_spending (
  organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  -- The nil UUID: all workflows.
  workflow_id     uuid NOT NULL,
  -- The day, or the first day of the month.
  period          date NOT NULL,
  spent           bigint NOT NULL,
  PRIMARY KEY (organization_id, workflow_id, period)
);

-- What requests under way may cost at most, one for each run.
CREATE TABLE model_reservations (
  run_id          uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  workflow_id     uuid NOT NULL,
  -- The answer of the run that is asked for.
  turn            integer NOT NULL,
  day             date NOT NULL,
  amount          bigint NOT NULL,
  -- Its runner has ended if it is still there then.
  expires_at      timestamptz NOT NULL
);
CREATE INDEX model_reservations_organization ON model_reservations (organization_id);
