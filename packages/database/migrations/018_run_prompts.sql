-- Up Migration

-- What a model was asked with, beside the steps of the journal (contract README, "The prompt of a model"). A row is
-- written before the first request with it; a run has one row unless its tools or its history change.
CREATE TABLE run_prompts (
  run_id         uuid NOT NULL REFERENCES starts ON DELETE CASCADE,
  -- The position of the next step of the journal when it was first used, and when it was last used.
  position       integer NOT NULL,
  asked_position integer NOT NULL,
  prompt         json NOT NULL,
  created_at     timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (run_id, position)
);
