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

-- Notifies the gateways when a cached API key is outdated. The payload is the key's prefix, or the organization's id.
-- `last_used_at` is not among the columns, so that the use of a key sends no notification. Dropped by migration 006.
CREATE FUNCTION announce_key_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_TABLE_NAME = 'organizations' THEN
    PERFORM pg_notify('api_keys', NEW.id::text);
    RETURN NULL;
  END IF;
  IF TG_OP <> 'INSERT' THEN
    PERFORM pg_notify('api_keys', OLD.prefix);
  END IF;
  IF TG_OP <> 'DELETE' THEN
    PERFORM pg_notify('api_keys', NEW.prefix);
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER api_keys_announce AFTER INSERT OR DELETE OR UPDATE OF prefix, key_sha256, scopes, expires_at, revoked_at
  ON api_keys FOR EACH ROW EXECUTE FUNCTION announce_key_change();
CREATE TRIGGER organizations_announce AFTER UPDATE OF name, is_suspended
  ON organizations FOR EACH ROW EXECUTE FUNCTION announce_key_change();
