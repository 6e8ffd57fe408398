-- Up Migration

-- The n-grams of a case-folded text, from `shortest` (1 to 3) to 3 characters, as hashes that differ between
-- organizations. They are the entries of the search index. pg_trgm is no alternative: it ignores searches of one or two
-- characters, punctuation, and letters under some locales, and its entries are shared by all organizations. Two n-grams
-- may have the same hash, so every match is checked against the text.
CREATE FUNCTION workflow_search_grams(organization_id uuid, folded text, shortest integer) RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  seed   bigint := ('x' || right(organization_id::text, 8))::bit(32)::bigint;
  grams  integer[] := '{}';
  a      bigint;
  b      bigint;
  c      bigint;
  letter text;
BEGIN
  FOREACH letter IN ARRAY string_to_array(folded, NULL) LOOP
    a := b;
    b := c;
    c := ascii(letter);
    IF shortest < 2 THEN
      grams := grams || ((seed + c * 1640531527) % 2147483647)::integer;
    END IF;
    IF shortest < 3 AND b IS NOT NULL THEN
      grams := grams || ((seed + c * 1640531527 + b * 1103515245) % 2147483647)::integer;
    END IF;
    IF a IS NOT NULL THEN
      grams := grams || ((seed + c * 1640531527 + b * 1103515245 + a * 69069069) % 2147483647)::integer;
    END IF;
  END LOOP;
  RETURN grams;
END
$$;

CREATE TABLE workflows (
  id                 uuid PRIMARY KEY,
  organization_id    uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  name               text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 500),
  description        text NOT NULL CHECK (char_length(description) <= 50000),
  scope              text NOT NULL CHECK (char_length(scope) BETWEEN 1 AND 100),
  -- Name and description with folded case, as workflowSearchText() writes them: PostgreSQL before 18 cannot fold case.
  search_text        text COLLATE "C" NOT NULL,
  is_active          boolean NOT NULL,
  auto_run_enabled   boolean,
  auto_run_frequency text CHECK (auto_run_frequency IN ('hourly', 'daily', 'weekly', 'monthly')),
  -- When the schedule was switched on. It recurs at this minute, hour, weekday or day of the month, in UTC.
  auto_run_anchor_at timestamptz(3),
  -- When the schedule is due next; null when auto-run is off.
  auto_run_next_at   timestamptz(3),
  created_at         timestamptz(3) NOT NULL DEFAULT now(),
  updated_at         timestamptz(3) NOT NULL DEFAULT now(),
  UNIQUE (organization_id, id),
  CHECK (auto_run_enabled IS NOT NULL OR auto_run_frequency IS NULL),
  CHECK (auto_run_enabled IS NOT TRUE OR auto_run_frequency IS NOT NULL),
  CHECK (auto_run_next_at IS NULL OR (auto_run_enabled AND auto_run_anchor_at IS NOT NULL))
);

-- The order of the list.
CREATE INDEX workflows_list ON workflows (organization_id, created_at, id);
-- Without `fastupdate`, so that no search reads the list of pending entries. Without statistics, because they would be
-- large and the search statement itself decides when to use the index.
CREATE INDEX workflows_search ON workflows
  USING gin (workflow_search_grams(organization_id, search_text, 1)) WITH (fastupdate = off);
ALTER INDEX workflows_search ALTER COLUMN 1 SET STATISTICS 0;
CREATE INDEX workflows_auto_run ON workflows (auto_run_frequency, auto_run_next_at) WHERE auto_run_next_at IS NOT NULL;

-- Both foreign keys contain the organization, so that a workflow cannot have another organization's user.
CREATE TABLE workflow_users (
  organization_id uuid NOT NULL,
  workflow_id     uuid NOT NULL,
  user_id         uuid NOT NULL,
  PRIMARY KEY (workflow_id, user_id),
  FOREIGN KEY (organization_id, workflow_id) REFERENCES workflows (organization_id, id) ON DELETE CASCADE,
  FOREIGN KEY (organization_id, user_id) REFERENCES users (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX workflow_users_user ON workflow_users (user_id);

CREATE TABLE triggers (
  id            uuid PRIMARY KEY,
  workflow_id   uuid NOT NULL REFERENCES workflows ON DELETE CASCADE,
  name          text NOT NULL DEFAULT '' CHECK (char_length(name) <= 500),
  is_active     boolean NOT NULL,
  source_slug   text NOT NULL CHECK (char_length(source_slug) BETWEEN 1 AND 100),
  source_name   text NOT NULL CHECK (char_length(source_name) BETWEEN 1 AND 200),
  -- `json` and not `jsonb`: responses contain it exactly as configured, including the order of its names.
  filters       json CHECK (json_typeof(filters) = 'object'),
  input_message text NOT NULL DEFAULT '' CHECK (char_length(input_message) <= 50000),
  created_at    timestamptz(3) NOT NULL DEFAULT now()
);
CREATE INDEX triggers_workflow ON triggers (workflow_id, created_at, id);

CREATE TABLE trigger_events (
  trigger_id uuid NOT NULL REFERENCES triggers ON DELETE CASCADE,
  position   integer NOT NULL CHECK (position >= 0),
  slug       text NOT NULL CHECK (char_length(slug) BETWEEN 1 AND 100),
  name       text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 200),
  PRIMARY KEY (trigger_id, position),
  UNIQUE (trigger_id, slug)
);

CREATE TABLE subagent_sources (
  trigger_id uuid NOT NULL REFERENCES triggers ON DELETE CASCADE,
  position   integer NOT NULL CHECK (position >= 0),
  source_id  uuid,
  name       text COLLATE "C" NOT NULL CHECK (char_length(name) BETWEEN 1 AND 200),
  type       text NOT NULL CHECK (char_length(type) BETWEEN 1 AND 100),
  PRIMARY KEY (trigger_id, position),
  CHECK ((type = 'platform_internal') = (source_id IS NULL))
);

CREATE TABLE files (
  id          uuid PRIMARY KEY,
  workflow_id uuid NOT NULL REFERENCES workflows ON DELETE CASCADE,
  name        text COLLATE "C" NOT NULL CHECK (char_length(name) BETWEEN 1 AND 255),
  path        text[] COLLATE "C" NOT NULL DEFAULT '{}',
  content     text NOT NULL CHECK (octet_length(content) <= 1048576),
  UNIQUE (workflow_id, path, name)
);
