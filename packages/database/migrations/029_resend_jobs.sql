-- Up Migration

-- Payloads that a person sends again together. The application sends them one after the other, by ids that are chosen
-- here: whoever continues after a crash asks the dispatcher for the same ids, which sends each at most once.
CREATE TABLE resend_jobs (
  id              uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  status          text NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'stopped', 'done')),
  -- What is sent again, and the id of each new delivery, in the same order.
  delivery_ids    uuid[] NOT NULL,
  resend_ids      uuid[] NOT NULL,
  per_second      integer NOT NULL CHECK (per_second BETWEEN 1 AND 100),
  -- How many have an outcome or were refused, from the first on.
  done            integer NOT NULL DEFAULT 0,
  -- Of these, refused by the dispatcher: their source was deleted, or asks for an approval now.
  not_sent        integer NOT NULL DEFAULT 0,
  created_by      uuid,
  created_by_name text,
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  finished_at     timestamptz(3),
  -- The process that sends, until when nobody else does.
  lease_owner     text,
  lease_until     timestamptz,
  CHECK (cardinality(delivery_ids) = cardinality(resend_ids)),
  CHECK ((status = 'running') = (finished_at IS NULL))
);
CREATE INDEX resend_jobs_list ON resend_jobs (organization_id, created_at DESC, id DESC);
CREATE INDEX resend_jobs_running ON resend_jobs (created_at) WHERE status = 'running';
