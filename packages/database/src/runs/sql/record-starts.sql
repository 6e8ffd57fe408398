-- Checks and records any number of starts, each independently, in the order given.
-- - `locked` locks the sessions before anything is written, and waits for none, so two batches do not deadlock. The
--   locked row decides whether a session is open. A start gets its number under that lock, so numbers are in commit
--   order.
-- - `claimed` writes the Idempotency-Key before the start. A concurrent statement with the same key waits there for
--   the first one to commit, and ON CONFLICT returns the first one's row, which its own snapshot does not show. A key
--   is kept for 24 hours (contract README, "Idempotency").
-- By hand: the bench's starts; one commit for a batch.
-- Parameters: $1 JSON list of starts. Rows: one for each start, in their order.
WITH request AS MATERIALIZED (
  SELECT * FROM ROWS FROM (json_to_recordset($1::json) AS (
    organization_id uuid, start_id uuid, workflow_id uuid, session_id uuid, new_session_id uuid, context text,
    api_key_id uuid, request_id text, idempotency_key text, request_sha256 text, traceparent text, tracestate text
  )) WITH ORDINALITY AS request (
    organization_id, start_id, workflow_id, session_id, new_session_id, context,
    api_key_id, request_id, idempotency_key, request_sha256, traceparent, tracestate, position
  )
),
checked AS MATERIALIZED (
  SELECT request.*, coalesce(request.session_id, request.new_session_id) AS target_session_id,
    earlier.start_id AS earlier_start_id, earlier.session_id AS earlier_session_id, session.id AS known_session_id,
    trigger.id AS trigger_id, trigger.input_message,
    CASE
      WHEN earlier.request_sha256 = decode(request.request_sha256, 'hex') THEN 'replayed'
      WHEN earlier.start_id IS NOT NULL THEN 'idempotency_conflict'
      WHEN workflow.id IS NULL OR workflow.deleted_at IS NOT NULL THEN 'workflow_not_found'
      :WORKFLOW_REFUSALS
    END AS refusal
  FROM request
  LEFT JOIN idempotency_keys AS earlier
    ON earlier.api_key_id = request.api_key_id AND earlier.key = request.idempotency_key
    AND earlier.created_at > now() - interval '24 hours'
  LEFT JOIN workflows AS workflow
    ON workflow.organization_id = request.organization_id AND workflow.id = request.workflow_id
  :JOIN_API_TRIGGER
  LEFT JOIN sessions AS session
    ON session.organization_id = request.organization_id AND session.id = request.session_id
),
locked AS MATERIALIZED (
  SELECT id, is_open FROM sessions
  WHERE id = ANY (ARRAY(SELECT known_session_id FROM checked WHERE refusal IS NULL))
  FOR NO KEY UPDATE SKIP LOCKED
),
decided AS MATERIALIZED (
  SELECT checked.*,
    CASE
      WHEN refusal IS NOT NULL THEN refusal
      WHEN checked.session_id IS NULL THEN 'accepted'
      WHEN known_session_id IS NULL THEN 'session_not_found'
      WHEN locked.id IS NULL THEN 'session_locked'
      WHEN NOT locked.is_open THEN 'session_closed'
      ELSE 'accepted'
    END AS decision
  FROM checked LEFT JOIN locked ON locked.id = known_session_id
),
claimed AS (
  INSERT INTO idempotency_keys AS stored (api_key_id, key, request_sha256, start_id, session_id, created_at)
  SELECT api_key_id, idempotency_key, decode(request_sha256, 'hex'), start_id, target_session_id, clock_timestamp()
  FROM decided WHERE decision = 'accepted' AND idempotency_key IS NOT NULL
  ORDER BY api_key_id, idempotency_key
  ON CONFLICT (api_key_id, key) DO UPDATE SET
    (request_sha256, start_id, session_id, created_at) = (
      SELECT request_sha256, start_id, session_id, created_at
      FROM (VALUES
        (stored.created_at > now() - interval '24 hours',
         stored.request_sha256, stored.start_id, stored.session_id, stored.created_at),
        (stored.created_at <= now() - interval '24 hours',
         excluded.request_sha256, excluded.start_id, excluded.session_id, excluded.created_at)
      ) AS version (is_current, request_sha256, start_id, session_id, created_at)
      WHERE is_current
    )
  RETURNING api_key_id, key, request_sha256, start_id, session_id
),
outcome AS MATERIALIZED (
  SELECT decided.*,
    CASE
      WHEN decision <> 'accepted' OR claimed.start_id IS NULL OR claimed.start_id = decided.start_id THEN decision
      WHEN claimed.request_sha256 = decode(decided.request_sha256, 'hex') THEN 'replayed'
      ELSE 'idempotency_conflict'
    END AS kind,
    coalesce(claimed.start_id, earlier_start_id, decided.start_id) AS answered_start_id,
    coalesce(claimed.session_id, earlier_session_id, target_session_id) AS answered_session_id
  FROM decided
  LEFT JOIN claimed ON claimed.api_key_id = decided.api_key_id AND claimed.key = decided.idempotency_key
),
opened AS (
  INSERT INTO sessions (id, organization_id, last_start_number, waiting_since)
  SELECT new_session_id, organization_id, 1, now() FROM outcome WHERE kind = 'accepted' AND session_id IS NULL
),
counted AS (
  UPDATE sessions SET
    last_start_number = last_start_number + added.starts,
    last_used_at = now(),
    waiting_since = CASE WHEN last_finished_number < last_start_number THEN waiting_since
      ELSE greatest(now(), waiting_since) END
  FROM (
    SELECT session_id, count(*) AS starts FROM outcome
    WHERE kind = 'accepted' GROUP BY session_id
  ) AS added
  WHERE sessions.id = added.session_id
  RETURNING sessions.id, last_start_number - added.starts AS last_number
),
recorded AS (
  INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, trigger_id, input_message,
    api_key_id, request_id, traceparent, tracestate)
  SELECT start_id, organization_id, workflow_id, target_session_id,
    coalesce(counted.last_number, 0) + row_number() OVER (PARTITION BY target_session_id ORDER BY position),
    'api', context, trigger_id, input_message, api_key_id, request_id, traceparent, tracestate
  FROM outcome LEFT JOIN counted ON counted.id = outcome.session_id
  WHERE kind = 'accepted'
)
SELECT kind, answered_start_id AS "startId", answered_session_id AS "sessionId" FROM outcome ORDER BY position
