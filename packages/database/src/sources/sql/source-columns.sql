-- The columns of a webhook source without its secret. A fragment.
id, organization_id AS "organizationId", name, description, endpoint_url AS "endpointUrl",
  signing_secret IS NOT NULL AS "hasSigningSecret", example_request_body AS "exampleRequestBody",
  created_at AS "createdAt", updated_at AS "updatedAt", verified_at AS "verifiedAt", version, approval,
  paused_at AS "pausedAt"
