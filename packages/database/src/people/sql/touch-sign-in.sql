-- Notes the use of a sign-in, to the minute. By hand: of concurrent requests, one writes.
-- Parameters: $1 hash of the token. Rows: none.
UPDATE sign_ins SET last_seen_at = now() WHERE token_sha256 = $1 AND last_seen_at < now() - interval '1 minute'
