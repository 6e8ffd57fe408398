-- A ClaimedRun as JSON, from `starts` as `claimed`, with the time of the claim, and `workflows`. A fragment of the
--   statements that claim runs.
json_build_object(
  'id', claimed.id,
  'organizationId', claimed.organization_id,
  'sessionId', claimed.session_id,
  'number', claimed.number,
  'workflow', json_build_object(
    'id', workflows.id, 'name', workflows.name, 'description', workflows.description,
    'model', workflows.model,
    'rulesFileId', (
      SELECT id FROM files WHERE workflow_id = workflows.id AND path = '{}' AND name = ':RULES_FILE_NAME'
    ),
    'rulesLikeFiles', (
      SELECT json_agg(json_build_object('name', file.name, 'path', file.path))
      FROM (SELECT name, path FROM files WHERE workflow_id = workflows.id AND name ILIKE '%rules.y%' LIMIT 20) AS file
    )
  ),
  'inputMessage', claimed.input_message,
  'context', claimed.context,
  'acceptedAt', claimed.created_at,
  'claimedAt', claimed.claimed_at,
  'requestId', claimed.request_id,
  'trace', CASE WHEN claimed.traceparent IS NOT NULL
    THEN json_build_object('traceparent', claimed.traceparent, 'tracestate', claimed.tracestate) END,
  'attempts', claimed.attempts,
  'isFirst', claimed.started_at = claimed.claimed_at,
  'waitedMs', CASE WHEN claimed.started_at = claimed.claimed_at
    THEN greatest(0, 1000 * extract(epoch FROM claimed.claimed_at - claimed.created_at)) END
)
