-- Up Migration

-- Sign-ins made before `signed_out_at` do not count in this organization: the person was signed out, or got another
-- role. A column of the user and not only deleted sign-ins, because a sign-in may be in another organization of the
-- person at that moment.
ALTER TABLE users
  ADD COLUMN signed_out_at timestamptz(3),
  -- Since 014: true for users whose address differed from another user's in case only. They stay until a person removes
  -- one of the two.
  ADD COLUMN is_duplicate  boolean NOT NULL DEFAULT false;

-- safe: changes only duplicates, of which there are few. Those who can sign in keep the address.
UPDATE users SET is_duplicate = true
FROM (
  SELECT id, row_number() OVER (PARTITION BY organization_id, lower(email)
    ORDER BY account_id IS NULL, role IS NULL, id) AS number
  FROM users
) AS same
WHERE same.id = users.id AND same.number > 1;

-- The collation of `email` is "C": lower() folds ASCII letters only, the same on every machine.
-- safe: an organization has few users, and writers of this table are people.
CREATE UNIQUE INDEX users_email ON users (organization_id, lower(email)) WHERE NOT is_duplicate;

ALTER TABLE one_time_links
  -- The address that a link of the kind `email` gives the account.
  ADD COLUMN new_email text,
  DROP CONSTRAINT one_time_links_kind_check,
  ADD CONSTRAINT one_time_links_kind_check CHECK (kind IN ('setup', 'invitation', 'reset', 'email')) NOT VALID,
  ADD CONSTRAINT one_time_links_new_email CHECK (
    CASE kind WHEN 'email' THEN char_length(new_email) BETWEEN 3 AND 320 ELSE new_email IS NULL END) NOT VALID;

-- safe: the table has the links of a few days. Earlier releases wrote setup links into their logs, and did not end
-- them.
UPDATE one_time_links SET revoked_at = now() WHERE kind = 'setup' AND used_at IS NULL AND revoked_at IS NULL;
