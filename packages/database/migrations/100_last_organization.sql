-- Up Migration

-- In which organization the person worked last: where the next sign-in begins.
ALTER TABLE accounts ADD COLUMN last_organization_id uuid;
