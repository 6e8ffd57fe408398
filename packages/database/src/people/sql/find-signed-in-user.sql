-- Finds the person of a sign-in's token, as a user of the organization in which the person works.
-- By hand: every request of the application waits for it.
-- Parameters: $1 hash of the token. Rows: one, unless the sign-in ended or the person lost the role.
SELECT s.id AS "signInId", s.account_id AS "accountId", u.id AS "userId", u.organization_id AS "organizationId", u.role,
       a.name, a.email,
       CASE WHEN s.confirmed_at > now() - interval ':CONFIRMATION_MINUTES minutes'
         THEN s.confirmed_at + interval ':CONFIRMATION_MINUTES minutes' END AS "confirmedUntil",
       s.last_seen_at < now() - interval '1 minute' AS "isStale"
FROM sign_ins s
JOIN accounts a ON a.id = s.account_id AND a.disabled_at IS NULL
JOIN users u ON u.organization_id = s.organization_id AND u.account_id = s.account_id
  AND u.role IS NOT NULL AND u.deactivated_at IS NULL AND :IS_AFTER_SIGN_OUT
JOIN organizations o ON o.id = u.organization_id AND o.deleted_at IS NULL
WHERE s.token_sha256 = $1 AND s.expires_at > now() AND s.last_seen_at > now() - interval ':SIGN_IN_IDLE_DAYS days'
