-- Up Migration

-- What a person gets notices of by e-mail: of `failures`, `approvals`, `sources`, `keys`.
ALTER TABLE users ADD COLUMN notice_kinds text[] NOT NULL DEFAULT '{}';

-- Where the notices of an organization are sent, signed like payloads.
CREATE TABLE notice_webhooks (
  organization_id uuid PRIMARY KEY REFERENCES organizations ON DELETE CASCADE,
  url             text NOT NULL,
  -- Encrypted like that of a webhook source.
  signing_secret  bytea,
  created_at      timestamptz(3) NOT NULL DEFAULT now()
);

-- A notice to one recipient.
CREATE TABLE notices (
  id              uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  -- The user who gets it by e-mail; null: the webhook gets it.
  user_id         uuid,
  recipient       text NOT NULL,
  -- What it is about: at most one an hour for a recipient.
  topic           text NOT NULL,
  body            json NOT NULL,
  status          text NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'sent', 'failed')),
  attempts        integer NOT NULL DEFAULT 0,
  error           text,
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  next_at         timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX notices_list ON notices (organization_id, created_at DESC, id DESC);
CREATE INDEX notices_topic ON notices (organization_id, topic, created_at DESC);
CREATE INDEX notices_waiting ON notices (next_at) WHERE status = 'waiting';
