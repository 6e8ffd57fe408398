-- Up Migration

-- A session has work exactly when last_finished_number < last_start_number. Both counters are in the row that every
-- change locks, so the statement that releases the lease can check for more work without a race.
CREATE TABLE sessions (
  id                   uuid PRIMARY KEY,
  organization_id      uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  is_open              boolean NOT NULL DEFAULT true,
  created_at           timestamptz(3) NOT NULL DEFAULT now(),
  closed_at            timestamptz(3),
  last_start_number    bigint NOT NULL DEFAULT 0 CHECK (last_start_number >= 0),
  last_finished_number bigint NOT NULL DEFAULT 0,
  lease_owner          text,
  lease_epoch          bigint NOT NULL DEFAULT 0 CHECK (lease_epoch >= 0),
  lease_until          timestamptz,
  -- Since when the session has had work; null when it has none. The sweep acquires sessions in this order.
  waiting_since        timestamptz,
  UNIQUE (organization_id, id),
  CHECK (last_finished_number BETWEEN 0 AND last_start_number),
  CHECK (is_open = (closed_at IS NULL)),
  CHECK ((lease_owner IS NULL) = (lease_until IS NULL))
);
CREATE INDEX sessions_with_work ON sessions (organization_id, waiting_since, id)
  WHERE last_finished_number < last_start_number;

-- A start and its run are one row with one id.
CREATE TABLE starts (
  id              uuid PRIMARY KEY,
  organization_id uuid NOT NULL,
  workflow_id     uuid NOT NULL,
  session_id      uuid NOT NULL,
  -- The start's position in its session, assigned under the lock of the session's row: numbers are in commit order.
  number          bigint NOT NULL CHECK (number > 0),
  origin          text NOT NULL CHECK (origin IN ('api', 'auto_run')),
  context         text NOT NULL CHECK (char_length(context) <= 10000),
  -- The trigger that fired, and its message at that time; null for a scheduled run.
  trigger_id      uuid,
  input_message   text NOT NULL DEFAULT '',
  api_key_id      uuid REFERENCES api_keys ON DELETE SET NULL,
  request_id      text NOT NULL CHECK (char_length(request_id) BETWEEN 1 AND 200),
  status          text NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'running', 'succeeded', 'failed')),
  attempts        integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
  error           text,
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  -- In microseconds: the statement that claims a run is the first one exactly when this equals now().
  started_at      timestamptz,
  finished_at     timestamptz(3),
  UNIQUE (session_id, number),
  FOREIGN KEY (organization_id, workflow_id) REFERENCES workflows (organization_id, id) ON DELETE CASCADE,
  FOREIGN KEY (organization_id, session_id) REFERENCES sessions (organization_id, id) ON DELETE CASCADE,
  CHECK ((status IN ('succeeded', 'failed')) = (finished_at IS NOT NULL)),
  CHECK ((status = 'failed') = (error IS NOT NULL))
);
-- Two runs of a session are never executed at once, even if the code is wrong.
CREATE UNIQUE INDEX starts_one_running_per_session ON starts (session_id) WHERE status = 'running';
CREATE INDEX starts_list ON starts (organization_id, created_at DESC, id DESC);
-- Without the runs that succeeded: they are frequent, so the index of the list finds them fast. Saves two writes for
-- each run.
CREATE INDEX starts_list_by_status ON starts (organization_id, status, created_at DESC, id DESC)
  WHERE status <> 'succeeded';
CREATE INDEX starts_workflow ON starts (workflow_id, created_at DESC, id DESC);

CREATE TABLE run_steps (
  run_id     uuid NOT NULL REFERENCES starts ON DELETE CASCADE,
  position   integer NOT NULL CHECK (position >= 0),
  kind       text NOT NULL CHECK (kind IN ('message', 'model_answer', 'tool_call', 'tool_result', 'note')),
  data       json NOT NULL,
  epoch      bigint NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (run_id, position)
);

-- One row for each Idempotency-Key that an API key used in the last 24 hours. Has the session too: of two concurrent
-- requests with one key, the second is answered from this row, because its snapshot does not show the start of the
-- first.
CREATE TABLE idempotency_keys (
  api_key_id     uuid NOT NULL REFERENCES api_keys ON DELETE CASCADE,
  key            text COLLATE "C" NOT NULL CHECK (char_length(key) BETWEEN 1 AND 255),
  request_sha256 bytea NOT NULL CHECK (octet_length(request_sha256) = 32),
  start_id       uuid NOT NULL REFERENCES starts ON DELETE CASCADE,
  session_id     uuid NOT NULL,
  created_at     timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (api_key_id, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);
CREATE INDEX idempotency_keys_start ON idempotency_keys (start_id);
