-- Up Migration

-- What an organization adds to the system text of agents with a model: the newest version holds, and an empty text adds
-- nothing. The newest of each organization are kept.
CREATE TABLE instructions (
  organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  number          integer NOT NULL,
  text            text NOT NULL,
  saved_at        timestamptz(3) NOT NULL DEFAULT now(),
  -- The user; null: the operator.
  saved_by        uuid,
  saved_by_name   text NOT NULL,
  PRIMARY KEY (organization_id, number)
);
