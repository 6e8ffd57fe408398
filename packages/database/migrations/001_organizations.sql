-- Up Migration

CREATE TABLE organizations (
  id           uuid PRIMARY KEY,
  name         text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 200),
  is_suspended boolean NOT NULL DEFAULT false,
  created_at   timestamptz(3) NOT NULL DEFAULT now(),
  updated_at   timestamptz(3) NOT NULL DEFAULT now()
);

-- Text by which responses are sorted is COLLATE "C": code point order, independent of the database's locale.
CREATE TABLE users (
  id              uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  email           text COLLATE "C" NOT NULL CHECK (char_length(email) BETWEEN 1 AND 320),
  first_name      text NOT NULL DEFAULT '' CHECK (char_length(first_name) <= 200),
  last_name       text NOT NULL DEFAULT '' CHECK (char_length(last_name) <= 200),
  UNIQUE (organization_id, email),
  UNIQUE (organization_id, id)
);

CREATE TABLE api_keys (
  id              uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  name            text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 200),
  prefix          text NOT NULL UNIQUE CHECK (prefix ~ '^wfk_[0-9A-Za-z]{8}$'),
  key_sha256      bytea NOT NULL UNIQUE CHECK (octet_length(key_sha256) = 32),
  scopes          text[] NOT NULL CHECK (scopes <@ ARRAY['read', 'start'] AND cardinality(scopes) > 0),
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  expires_at      timestamptz(3),
  revoked_at      timestamptz(3),
  last_used_at    timestamptz(3),
  UNIQUE (organization_id, name)
);
