-- Lists the sources of an organization that are not deleted, by name in code point order.
-- By hand: the bench's list of the application; one statement of hot-statements.test.
-- Parameters: $1 organization. Rows: one for each source.
SELECT id, organization_id AS "organizationId", name, description, endpoint_url AS "endpointUrl",
  signing_secret IS NOT NULL AS "hasSigningSecret", example_request_body AS "exampleRequestBody",
  created_at AS "createdAt", updated_at AS "updatedAt", verified_at AS "verifiedAt", version, approval,
  paused_at AS "pausedAt"
FROM webhook_sources
WHERE organization_id = $1 AND deleted_at IS NULL ORDER BY name COLLATE "C", id
