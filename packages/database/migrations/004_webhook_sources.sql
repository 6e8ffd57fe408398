-- Up Migration

CREATE TABLE webhook_sources (
  id                   uuid PRIMARY KEY,
  organization_id      uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  name                 text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 200),
  -- The name with case folded away: what is unique in an organization.
  name_key             text NOT NULL,
  description          text NOT NULL CHECK (char_length(description) <= 10000),
  endpoint_url         text NOT NULL CHECK (char_length(endpoint_url) BETWEEN 1 AND 2000),
  -- AES-256-GCM under SECRETS_KEY, bound to organization and source; null when no secret is set.
  signing_secret       bytea,
  example_request_body json NOT NULL CHECK (json_typeof(example_request_body) = 'object'),
  -- Goes up with every save: a save that began before another one ended is told so, instead of mixing with it.
  version              integer NOT NULL DEFAULT 1 CHECK (version > 0),
  created_at           timestamptz(3) NOT NULL DEFAULT now(),
  updated_at           timestamptz(3) NOT NULL DEFAULT now(),
  -- Null when a manifest recorded the source without the verification request.
  verified_at          timestamptz(3),
  -- A deleted source keeps its row, so that its log stays readable and its id is never used again.
  deleted_at           timestamptz(3),
  UNIQUE (organization_id, id)
);
CREATE UNIQUE INDEX webhook_sources_name ON webhook_sources (organization_id, name_key) WHERE deleted_at IS NULL;

-- No foreign key on source_id: the refused verification of a source that was never saved is logged too.
CREATE TABLE deliveries (
  id              uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  source_id       uuid NOT NULL,
  kind            text NOT NULL CHECK (kind IN ('verification', 'payload')),
  outcome         text NOT NULL CHECK (outcome IN
    ('accepted', 'rejected', 'timed_out', 'unreachable', 'refused', 'invalid', 'unknown', 'in_flight')),
  -- As the endpoint wrote it: three digits, whatever they mean.
  status          integer CHECK (status BETWEEN 0 AND 999),
  -- Why it was not accepted, in words; for `invalid` also field by field.
  reason          text,
  mismatches      json,
  duration_ms     integer CHECK (duration_ms >= 0),
  answer          text CHECK (char_length(answer) <= 300),
  -- What was sent, the signing secret left out.
  request_body    json NOT NULL,
  session_id      uuid,
  run_id          uuid,
  request_id      text,
  -- The presence of the dispatcher that sends it: whose advisory lock is gone, that one has died.
  sender          bigint NOT NULL,
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  finished_at     timestamptz(3),
  CHECK ((outcome = 'in_flight') = (finished_at IS NULL)),
  CHECK (outcome NOT IN ('accepted', 'rejected') OR status IS NOT NULL)
);
-- Each filter of the log has its index, so that a page costs the same however rare what it looks for is; the partial ones
-- are not touched while a delivery is claimed. There is none on created_at alone: a page of a source that has been quiet
-- for long would be looked for in it, behind everything newer of all others.
CREATE INDEX deliveries_log ON deliveries (source_id, created_at DESC, id DESC);
CREATE INDEX deliveries_log_by_outcome ON deliveries (source_id, outcome, created_at DESC, id DESC)
  WHERE outcome <> 'in_flight';
CREATE INDEX deliveries_log_verifications ON deliveries (source_id, created_at DESC, id DESC)
  WHERE kind = 'verification';
CREATE INDEX deliveries_in_flight ON deliveries (created_at) WHERE outcome = 'in_flight';
CREATE INDEX deliveries_run ON deliveries (run_id, created_at, id) WHERE run_id IS NOT NULL;
