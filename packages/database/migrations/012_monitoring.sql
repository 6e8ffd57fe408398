-- Up Migration

-- The W3C trace context of the request that started the run: every attempt and delivery continues it.
-- NOT VALID: the rows that exist have none, and a scan would lock a large table.
ALTER TABLE starts
  ADD COLUMN traceparent text,
  ADD COLUMN tracestate  text,
  ADD CONSTRAINT starts_traceparent_check CHECK (char_length(traceparent) = 55) NOT VALID,
  ADD CONSTRAINT starts_tracestate_check CHECK (char_length(tracestate) <= 512) NOT VALID;

-- The one process that exports the gauges of the whole system, so that a sum over all processes is right. It keeps its
-- row by being scraped; the row of a process that is no longer scraped expires.
CREATE TABLE gauge_reporters (
  name  text PRIMARY KEY,
  owner text NOT NULL,
  until timestamptz NOT NULL
);
