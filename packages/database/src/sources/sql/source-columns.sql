-- The columns of a webhook source without its secret. A fragment.
id, organization_id, name, description, endpoint_url, signing_secret IS NOT NULL AS has_signing_secret,
  example_request_body, created_at, updated_at, verified_at, version, approval, paused_at
