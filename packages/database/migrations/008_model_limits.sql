-- Up Migration

-- Models whose API has limited the rate of requests: all runners share the pace. Without a row, requests are not
-- delayed.
CREATE TABLE model_limits (
  model       text PRIMARY KEY,
  -- No request is sent before: the API asked for it.
  not_before  timestamptz NOT NULL,
  -- The time that the last request got. The next one gets this time plus the interval.
  last_at     timestamptz NOT NULL,
  -- When the last run that waits without a slot continues. The next one continues after it.
  parked_at   timestamptz NOT NULL,
  interval_ms double precision NOT NULL CHECK (interval_ms > 0),
  -- When the interval grew last.
  limited_at  timestamptz NOT NULL
);

COMMENT ON COLUMN sessions.waiting_since IS
  'Since when the session has had work; null when it has none. In the future: the session is parked until then.';
