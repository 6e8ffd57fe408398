-- Finds API keys by their public prefixes, with their organizations.
-- By hand: every request of the public API waits for it; the gateway collects the keys of concurrent requests.
-- Parameters: $1 prefixes. Rows: one for each known prefix, in any order.
SELECT api_keys.id AS "apiKeyId", api_keys.prefix, api_keys.key_sha256 AS "keySha256", api_keys.scopes,
  CASE WHEN isfinite(api_keys.expires_at)
    THEN (extract(epoch FROM api_keys.expires_at - clock_timestamp()) * 1000)::double precision
  END AS "expiresInMs",
  api_keys.revoked_at IS NOT NULL AS "isRevoked",
  organizations.id AS "organizationId", organizations.name AS "organizationName",
  organizations.is_suspended AS "isSuspended"
FROM api_keys JOIN organizations ON organizations.id = api_keys.organization_id
WHERE api_keys.prefix = ANY ($1::text[])
