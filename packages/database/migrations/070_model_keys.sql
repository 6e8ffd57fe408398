-- Up Migration

-- Keys of an organization's own, with which its runs use a model in place of the service's key.
CREATE TABLE model_keys (
  -- New with each save: the encryption authenticates it, and the pace of requests is kept by it.
  id                uuid PRIMARY KEY,
  organization_id   uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  -- The name of the model.
  model             text NOT NULL,
  -- Encrypted, as signing secrets are.
  key               bytea NOT NULL,
  last_characters   text NOT NULL,
  saved_at          timestamptz(3) NOT NULL DEFAULT now(),
  saved_by          uuid,
  saved_by_name     text NOT NULL,
  -- A runner is to try the key.
  test_requested_at timestamptz(3),
  tested_at         timestamptz(3),
  -- Why the last test failed; null: it did not.
  test_error        text,
  CONSTRAINT model_keys_model UNIQUE (organization_id, model)
);
