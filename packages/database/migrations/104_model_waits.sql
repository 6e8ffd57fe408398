-- Up Migration

-- Organizations whose runs wait without a slot for a model with a limit. The row goes with that of the limit, whose
-- `parked_at` is the end of the line of all runs.
CREATE TABLE model_waits (
  model           text NOT NULL REFERENCES model_limits ON DELETE CASCADE,
  organization_id uuid NOT NULL,
  -- When the run continues that asked last. The next one of the organization continues a round later, or after all.
  parked_at       timestamptz NOT NULL,
  PRIMARY KEY (model, organization_id)
);
