-- Up Migration

-- What the agent with a model may look up: GET requests to an origin, or a server of the Model Context Protocol.
CREATE TABLE lookups (
  id              uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  name            text NOT NULL,
  name_key        text NOT NULL,
  kind            text NOT NULL CHECK (kind IN ('http', 'mcp')),
  url             text NOT NULL,
  header_name     text,
  -- Encrypted, as signing secrets are.
  header_value    bytea,
  -- The tools that models may call, with their descriptions and the schemas of their arguments.
  tools           json NOT NULL,
  version         integer NOT NULL DEFAULT 1,
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  updated_at      timestamptz(3) NOT NULL DEFAULT now(),
  CONSTRAINT lookups_name UNIQUE (organization_id, name_key)
);
