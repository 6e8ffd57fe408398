-- What both acquisitions return: whether slots or shares left sessions behind, the acquired ones, and the
--   sources of their organizations, which are separate because many sessions belong to one organization. A fragment.
(SELECT count(*) FROM candidate) > (SELECT count(*) FROM chosen) AS "isMore",
(
  SELECT coalesce(json_agg(json_build_object(
    'lease', json_build_object('sessionId', acquired.id, 'epoch', acquired.lease_epoch),
    'organizationId', acquired.organization_id,
    'exhaustedRunId', CASE WHEN claimed.status = 'failed' THEN claimed.id END,
    'run', CASE WHEN claimed.status = 'running' AND workflows.id IS NOT NULL THEN :CLAIMED_RUN END
  )), '[]')
  FROM acquired
  LEFT JOIN claimed ON claimed.session_id = acquired.id
  LEFT JOIN workflows ON workflows.id = claimed.workflow_id
) AS sessions,
(
  SELECT coalesce(json_object_agg(organization_id, sources), '{}')
  FROM (
    :SMALL_SOURCES
  ) AS by_organization
) AS "sourcesByOrganization"
FROM (SELECT count(*) FROM commit) AS commit
