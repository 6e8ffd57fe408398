-- Records payloads as `in_flight` before a byte is sent: the source of each must exist, its lease must be the
--   session's, its organization not suspended, the source not paused, and the approval that it asks for given. Who may
--   approve, and the operator, approves a payload by sending it again.
-- By hand: the bench's deliveries; one statement for a batch. It inserts in the order of the ids, so that two batches
--   with the same ids do not deadlock. The steps of a journal are written with the claim, and the session of such a
--   request is locked first: the next owner of its lease reads either the claim with its steps or neither. Scalar
--   subqueries find the approval and the person by their keys, and only for a source that needs an approval; FOR SHARE
--   orders the claim and an edit of the URL, which ends the approval.
-- Parameters, each a list: $1 ids, $2 organizations, $3 sources, $4 bodies, $5 runs, $6 request ids, $7 sessions, $8
--   epochs, $9 what is sent again, $10 by whom, $11 whether it has a journal; for each step of a journal: $12
--   the request, $13 position, $14 kind, $15 data, $16 earlier steps. Rows: one for each request, in their order.
WITH request AS MATERIALIZED (
  SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::uuid[], $6::text[], $7::uuid[], $8::bigint[],
    $9::uuid[], $10::uuid[], $11::boolean[])
    WITH ORDINALITY
    AS request (id, organization_id, source_id, body, run_id, request_id, session_id, epoch, resend_of, sent_by,
      has_journal, position)
),
locked AS MATERIALIZED (
  SELECT id, lease_epoch FROM sessions
  WHERE id = ANY (ARRAY(SELECT session_id FROM request WHERE has_journal)) AND lease_owner IS NOT NULL
  ORDER BY id FOR NO KEY UPDATE
),
checked AS MATERIALIZED (
  SELECT request.*, source.endpoint_url, source.signing_secret, source.example_request_body AS example, source.version,
    source.id IS NOT NULL AND source.deleted_at IS NULL AS has_source,
    CASE WHEN request.has_journal THEN locked.id IS NOT NULL AND session.id IS NOT NULL
      ELSE request.epoch IS NULL OR session.id IS NOT NULL END AS has_lease,
    coalesce(organization.is_suspended, false) AS is_suspended, source.paused_at IS NOT NULL AS is_paused,
    CASE WHEN NOT :NEEDS_APPROVAL THEN true
        WHEN request.resend_of IS NULL THEN coalesce((
          SELECT true FROM approvals
          WHERE delivery_id = request.id AND approvals.organization_id = request.organization_id
            AND approvals.source_id = request.source_id AND status = 'approved'
            AND coalesce(edited_body, request_body)::text = request.body
          FOR SHARE
        ), false)
        ELSE request.sent_by IS NULL OR coalesce((
          SELECT role IN ('owner', 'admin') AND deactivated_at IS NULL FROM users
          WHERE users.organization_id = request.organization_id AND users.id = request.sent_by
        ), false) END AS is_approved,
    coalesce(:NEEDS_APPROVAL AND source.approval = 'first', false) AS is_first_approval
  FROM request
  LEFT JOIN organizations AS organization ON organization.id = request.organization_id
  LEFT JOIN webhook_sources AS source
    ON source.organization_id = request.organization_id AND source.id = request.source_id
  LEFT JOIN sessions AS session
    ON session.organization_id = request.organization_id AND session.id = request.session_id
    AND session.lease_epoch = request.epoch
  LEFT JOIN locked ON locked.id = request.session_id AND locked.lease_epoch = request.epoch
),
claimed AS (
  INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, request_body, session_id, run_id, request_id,
    resend_of, sent_by, request_url)
  SELECT id, organization_id, source_id, 'payload', 'in_flight', body::json, session_id, run_id, request_id, resend_of,
    sent_by, endpoint_url
  FROM checked
  WHERE has_source AND has_lease AND NOT is_suspended AND is_approved AND NOT is_paused
    AND (SELECT true FROM deliveries WHERE deliveries.id = checked.id) IS NULL
  ORDER BY id
  RETURNING id, created_at
),
planned AS (
  INSERT INTO run_steps (run_id, position, kind, data, earlier_steps, epoch)
  SELECT request.run_id, step.position, step.kind, step.data::json, step.earlier_steps::json, request.epoch
  FROM unnest($12::uuid[], $13::integer[], $14::text[], $15::text[], $16::text[])
    AS step (id, position, kind, data, earlier_steps)
  JOIN claimed ON claimed.id = step.id JOIN request ON request.id = step.id
  WHERE (SELECT true FROM run_steps WHERE run_id = request.run_id AND position = step.position) IS NULL
)
SELECT checked.id,
  CASE
    WHEN claimed.id IS NOT NULL THEN 'claimed'
    WHEN EXISTS (SELECT FROM deliveries WHERE deliveries.id = checked.id) THEN 'known'
    WHEN NOT has_source THEN 'no_source'
    WHEN NOT has_lease THEN 'lease_lost'
    WHEN is_suspended THEN 'organization_suspended'
    WHEN NOT is_approved THEN 'approval_required'
    WHEN is_paused THEN 'source_paused'
  END AS kind,
  claimed.created_at AS "createdAt", endpoint_url AS "endpointUrl", signing_secret AS "signingSecret",
  example AS "exampleRequestBody", version, is_first_approval AS "isFirstApproval"
FROM checked LEFT JOIN claimed ON claimed.id = checked.id
ORDER BY position
