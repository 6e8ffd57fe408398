-- Up Migration

-- A session has work exactly when last_finished_number < last_start_number. Both counters live on the row that is locked
-- for every change, so "is there more?" can be asked in the statement that lets the lease go, without a race.
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
  -- Since when the work has been waiting to be taken up, or to be gone on with; null when there is none. The sweep's order.
  waiting_since        timestamptz,
  UNIQUE (organization_id, id),
  CHECK (last_finished_number BETWEEN 0 AND last_start_number),
  CHECK (is_open = (closed_at IS NULL)),
  CHECK ((lease_owner IS NULL) = (lease_until IS NULL))
);
CREATE INDEX sessions_with_work ON sessions (organization_id, waiting_since, id)
  WHERE last_finished_number < last_start_number;

-- A start and its run are one row: the run of start `id` is run `id`.
CREATE TABLE starts (
  id              uuid PRIMARY KEY,
  organization_id uuid NOT NULL,
  workflow_id     uuid NOT NULL,
  session_id      uuid NOT NULL,
  -- The start's place in its session, taken under the session's row lock: number order is commit order.
  number          bigint NOT NULL CHECK (number > 0),
  origin          text NOT NULL CHECK (origin IN ('api', 'auto_run')),
  context         text NOT NULL CHECK (char_length(context) <= 10000),
  -- The trigger that fired and its text as it was then; null for a scheduled run.
  trigger_id      uuid,
  input_message   text NOT NULL DEFAULT '',
  api_key_id      uuid REFERENCES api_keys ON DELETE SET NULL,
  request_id      text NOT NULL CHECK (char_length(request_id) BETWEEN 1 AND 200),
  status          text NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'running', 'succeeded', 'failed')),
  attempts        integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
  error           text,
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  -- In microseconds: that it equals now() tells the statement that takes a run up whether it is the first to do so.
  started_at      timestamptz,
  finished_at     timestamptz(3),
  UNIQUE (session_id, number),
  FOREIGN KEY (organization_id, workflow_id) REFERENCES workflows (organization_id, id) ON DELETE CASCADE,
  FOREIGN KEY (organization_id, session_id) REFERENCES sessions (organization_id, id) ON DELETE CASCADE,
  CHECK ((status IN ('succeeded', 'failed')) = (finished_at IS NOT NULL)),
  CHECK ((status = 'failed') = (error IS NOT NULL))
);
-- The last line of defence: no two runs of one session at once.
CREATE UNIQUE INDEX starts_one_running_per_session ON starts (session_id) WHERE status = 'running';
CREATE INDEX starts_list ON starts (organization_id, created_at DESC, id DESC);
-- Not of the many that succeeded, which the list itself finds soon: two writes less for each run.
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

-- One row for each Idempotency-Key that an API key used in the last 24 hours. The session stands here too, so that a
-- request that lost a race for the key is answered from this row alone: its snapshot cannot see the other's start yet.
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
