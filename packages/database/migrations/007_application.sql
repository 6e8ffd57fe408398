-- Up Migration

-- The application's people. An account is a person who can sign in; a user is that person in one organization.
CREATE TABLE accounts (
  id                  uuid PRIMARY KEY,
  email               text NOT NULL CHECK (char_length(email) BETWEEN 3 AND 320),
  -- The email address with folded case: see foldCase().
  email_key           text NOT NULL UNIQUE,
  name                text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 200),
  -- Argon2id as a PHC string; null: signs in with OpenID Connect only.
  password_hash       text,
  password_changed_at timestamptz(3),
  oidc_issuer         text,
  oidc_subject        text,
  disabled_at         timestamptz(3),
  last_signed_in_at   timestamptz(3),
  created_at          timestamptz(3) NOT NULL DEFAULT now(),
  UNIQUE (oidc_issuer, oidc_subject),
  CHECK ((oidc_issuer IS NULL) = (oidc_subject IS NULL))
);

-- A user without a role is listed in workflows and cannot sign in.
ALTER TABLE users
  ADD COLUMN account_id     uuid REFERENCES accounts ON DELETE SET NULL,
  ADD COLUMN role           text CHECK (role IN ('owner', 'admin', 'member')),
  ADD COLUMN deactivated_at timestamptz(3),
  ADD CONSTRAINT users_account UNIQUE (organization_id, account_id);
CREATE INDEX users_by_account ON users (account_id) WHERE account_id IS NOT NULL;

CREATE TABLE sign_ins (
  token_sha256    bytea PRIMARY KEY CHECK (octet_length(token_sha256) = 32),
  id              uuid NOT NULL UNIQUE,
  account_id      uuid NOT NULL REFERENCES accounts ON DELETE CASCADE,
  -- The organization that the person works in; null when the person has lost the last one.
  organization_id uuid REFERENCES organizations ON DELETE SET NULL,
  method          text NOT NULL CHECK (method IN ('password', 'oidc', 'link')),
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  -- Written at most once a minute.
  last_seen_at    timestamptz(3) NOT NULL DEFAULT now(),
  expires_at      timestamptz(3) NOT NULL,
  -- When the person last confirmed with the password.
  confirmed_at    timestamptz(3),
  address         text,
  user_agent      text CHECK (char_length(user_agent) <= 500)
);
CREATE INDEX sign_ins_account ON sign_ins (account_id, created_at DESC);
CREATE INDEX sign_ins_organization ON sign_ins (organization_id);
CREATE INDEX sign_ins_expiry ON sign_ins (expires_at);

CREATE TABLE one_time_links (
  token_sha256    bytea PRIMARY KEY CHECK (octet_length(token_sha256) = 32),
  kind            text NOT NULL CHECK (kind IN ('setup', 'invitation', 'reset')),
  -- Null: setup creates the organization.
  organization_id uuid REFERENCES organizations ON DELETE CASCADE,
  user_id         uuid REFERENCES users ON DELETE CASCADE,
  role            text CHECK (role IN ('owner', 'admin', 'member')),
  -- The user who made it; null: the operator.
  created_by      uuid,
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  expires_at      timestamptz(3) NOT NULL,
  used_at         timestamptz(3),
  revoked_at      timestamptz(3),
  CHECK ((kind = 'setup') = (user_id IS NULL))
);
CREATE INDEX one_time_links_user ON one_time_links (user_id, kind);
CREATE INDEX one_time_links_organization ON one_time_links (organization_id);
CREATE INDEX one_time_links_expiry ON one_time_links (expires_at);

-- Append-only. No foreign keys: an event outlives what it tells of.
CREATE TABLE audit_events (
  -- UUIDv7, so its order is the order in time.
  id              uuid PRIMARY KEY,
  -- Null: an event without an organization, such as a failed sign-in of an unknown address.
  organization_id uuid,
  at              timestamptz(3) NOT NULL DEFAULT now(),
  actor_kind      text NOT NULL CHECK (actor_kind IN ('person', 'operator', 'service', 'stranger')),
  actor_id        uuid,
  actor_name      text NOT NULL,
  action          text COLLATE "C" NOT NULL,
  target_kind     text,
  target_id       uuid,
  target_name     text,
  -- A list of {field, old, new}.
  changes         json NOT NULL DEFAULT '[]',
  request_id      text,
  address         text
);
CREATE INDEX audit_events_list ON audit_events (organization_id, id DESC);
CREATE INDEX audit_events_actor ON audit_events (organization_id, actor_id, id DESC) WHERE actor_id IS NOT NULL;
CREATE INDEX audit_events_target ON audit_events (organization_id, target_id, id DESC) WHERE target_id IS NOT NULL;
CREATE INDEX audit_events_action ON audit_events (organization_id, action, id DESC);

-- Rolled up by a maintenance task. `kind` and `thing_id` name a workflow, webhook source or API key; the zero UUID is
-- none. The kind `organization` has the totals. `measure` and `label`: `starts` by result, `deliveries` by outcome,
-- `run_ms` by the upper limit of a class of durations (for percentiles).
CREATE TABLE usage_hours (
  organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  kind            text NOT NULL CHECK (kind IN ('organization', 'workflow', 'webhook_source', 'api_key')),
  hour            timestamptz(0) NOT NULL,
  thing_id        uuid NOT NULL,
  measure         text NOT NULL,
  label           text NOT NULL,
  count           bigint NOT NULL,
  sum_ms          bigint NOT NULL DEFAULT 0,
  tokens          bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (organization_id, kind, hour, thing_id, measure, label)
);

-- The hours that were rolled up, without a gap.
CREATE TABLE usage_rollups (
  hour           timestamptz(0) PRIMARY KEY,
  -- Whether runs of the hour had not ended: it is rolled up again.
  has_unfinished boolean NOT NULL,
  rolled_up_at   timestamptz(3) NOT NULL DEFAULT now()
);

ALTER TABLE api_keys ADD COLUMN created_by uuid REFERENCES users ON DELETE SET NULL;
CREATE INDEX api_keys_created_by ON api_keys (created_by) WHERE created_by IS NOT NULL;
CREATE INDEX api_keys_list ON api_keys (organization_id, created_at DESC, id DESC);

-- A payload that a person sent again is a delivery of its own.
ALTER TABLE deliveries
  ADD COLUMN resend_of uuid,
  ADD COLUMN sent_by   uuid;
CREATE INDEX deliveries_resend_of ON deliveries (resend_of, created_at, id) WHERE resend_of IS NOT NULL;
-- What needs attention, over all sources of an organization.
CREATE INDEX deliveries_not_accepted ON deliveries (organization_id, created_at DESC, id DESC)
  WHERE outcome IN ('rejected', 'timed_out', 'unreachable', 'refused', 'invalid', 'unknown');

ALTER TABLE starts
  DROP CONSTRAINT starts_origin_check,
  ADD CONSTRAINT starts_origin_check CHECK (origin IN ('api', 'auto_run', 'app')) NOT VALID,
  -- The user who started it in the application.
  ADD COLUMN user_id uuid;
ALTER TABLE starts VALIDATE CONSTRAINT starts_origin_check;

-- The failed runs of a workflow, and the closed sessions: both are rare, and no hot statement writes these indexes.
CREATE INDEX starts_workflow_failed ON starts (workflow_id, created_at DESC, id DESC) WHERE status = 'failed';
CREATE INDEX sessions_closed ON sessions (organization_id, created_at DESC, id DESC) WHERE NOT is_open;

CREATE INDEX sessions_list ON sessions (organization_id, created_at DESC, id DESC);

-- A deleted workflow is hidden at once; a maintenance task deletes its runs in batches, then the row.
ALTER TABLE workflows ADD COLUMN deleted_at timestamptz(3);
CREATE INDEX workflows_deleted ON workflows (deleted_at) WHERE deleted_at IS NOT NULL;
-- The list of a member: these, and those that list the member.
CREATE INDEX workflows_company_wide ON workflows (organization_id, created_at, id) WHERE scope = 'company_wide';

-- Identifies the saved values of a file without reading its content. A constant default for the rows that exist, so
-- that PostgreSQL does not rewrite the table.
ALTER TABLE files ADD COLUMN version uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000';
ALTER TABLE files ALTER COLUMN version SET DEFAULT gen_random_uuid();

-- A deleted organization is hidden at once; a maintenance task deletes its rows in batches.
ALTER TABLE organizations
  ADD COLUMN deleted_at timestamptz(3),
  -- When that was done. The row stays, without its name.
  ADD COLUMN purged_at  timestamptz(3);
CREATE INDEX organizations_deleted ON organizations (deleted_at) WHERE deleted_at IS NOT NULL AND purged_at IS NULL;
-- An invitation is found by the address that an OpenID Connect provider has verified.
CREATE INDEX users_invitable ON users (lower(email)) WHERE account_id IS NULL AND role IS NOT NULL;
