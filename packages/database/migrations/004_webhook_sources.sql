-- Up Migration

CREATE TABLE webhook_sources (
  id                   uuid PRIMARY KEY,
  organization_id      uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  name                 text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 200),
  -- The normalized name, which is unique in an organization: see normalizedName().
  name_key             text NOT NULL,
  description          text NOT NULL CHECK (char_length(description) <= 10000),
  endpoint_url         text NOT NULL CHECK (char_length(endpoint_url) BETWEEN 1 AND 2000),
  -- Encrypted with AES-256-GCM and SECRETS_KEY, with organization and source as additional data; null without a secret.
  signing_secret       bytea,
  example_request_body json NOT NULL CHECK (json_typeof(example_request_body) = 'object'),
  -- Incremented by every save: of two concurrent saves, the second is refused.
  version              integer NOT NULL DEFAULT 1 CHECK (version > 0),
  created_at           timestamptz(3) NOT NULL DEFAULT now(),
  updated_at           timestamptz(3) NOT NULL DEFAULT now(),
  -- Null when a manifest saved the source without a verification request.
  verified_at          timestamptz(3),
  -- A deleted source keeps its row, so that its log stays readable and its id is never used again.
  deleted_at           timestamptz(3),
  UNIQUE (organization_id, id)
);
CREATE UNIQUE INDEX webhook_sources_name ON webhook_sources (organization_id, name_key) WHERE deleted_at IS NULL;

-- No foreign key on source_id: the log also has the failed verification of a source that was never saved.
CREATE TABLE deliveries (
  id              uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  source_id       uuid NOT NULL,
  kind            text NOT NULL CHECK (kind IN ('verification', 'payload')),
  outcome         text NOT NULL CHECK (outcome IN
    ('accepted', 'rejected', 'timed_out', 'unreachable', 'refused', 'invalid', 'unknown', 'in_flight')),
  -- The three digits that the endpoint sent, also if they are no HTTP status.
  status          integer CHECK (status BETWEEN 0 AND 999),
  -- Why it was not accepted, as a sentence. For `invalid`, `mismatches` has each field.
  reason          text,
  mismatches      json,
  duration_ms     integer CHECK (duration_ms >= 0),
  answer          text CHECK (char_length(answer) <= 300),
  -- The body that was sent, without the signing secret.
  request_body    json NOT NULL,
  session_id      uuid,
  run_id          uuid,
  request_id      text,
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  finished_at     timestamptz(3),
  CHECK ((outcome = 'in_flight') = (finished_at IS NULL)),
  CHECK (outcome NOT IN ('accepted', 'rejected') OR status IS NOT NULL)
);
-- Each filter of the log has an index, so that a page of rare entries costs the same as one of frequent entries.
-- Claiming a delivery does not write the partial indexes of outcomes and verifications. There is no index on created_at
-- alone: PostgreSQL could use it for a page of a source, and would read past the newer entries of all other sources.
CREATE INDEX deliveries_log ON deliveries (source_id, created_at DESC, id DESC);
CREATE INDEX deliveries_log_by_outcome ON deliveries (source_id, outcome, created_at DESC, id DESC)
  WHERE outcome <> 'in_flight';
CREATE INDEX deliveries_log_verifications ON deliveries (source_id, created_at DESC, id DESC)
  WHERE kind = 'verification';
CREATE INDEX deliveries_in_flight ON deliveries (created_at) WHERE outcome = 'in_flight';
CREATE INDEX deliveries_run ON deliveries (run_id, created_at, id) WHERE run_id IS NOT NULL;
