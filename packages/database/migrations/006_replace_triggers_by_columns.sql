-- Up Migration

-- packages/database writes these versions itself, in the transaction that changes the data; see workflows.ts. A constant
-- default for the rows that exist, so that PostgreSQL does not rewrite the table.
ALTER TABLE workflows ADD COLUMN version uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000';
ALTER TABLE workflows ALTER COLUMN version SET DEFAULT gen_random_uuid();
ALTER TABLE organizations ALTER COLUMN users_version SET DEFAULT gen_random_uuid()::text;

-- The triggers and functions of migration 005.
DROP TRIGGER workflows_begin_version ON workflows;
DROP TRIGGER workflows_version ON workflows;
DROP TRIGGER workflow_users_version ON workflow_users;
DROP TRIGGER workflow_users_truncate ON workflow_users;
DROP TRIGGER triggers_version ON triggers;
DROP TRIGGER triggers_truncate ON triggers;
DROP TRIGGER trigger_events_version ON trigger_events;
DROP TRIGGER trigger_events_truncate ON trigger_events;
DROP TRIGGER subagent_sources_version ON subagent_sources;
DROP TRIGGER subagent_sources_truncate ON subagent_sources;
DROP TRIGGER files_version ON files;
DROP TRIGGER files_truncate ON files;
DROP TRIGGER users_version ON users;
DROP TRIGGER users_truncate ON users;
DROP FUNCTION begin_workflow_version();
DROP FUNCTION touch_workflow_itself();
DROP FUNCTION touch_workflow_of_row();
DROP FUNCTION touch_workflow_of_trigger();
DROP FUNCTION touch_users_of_organization();
DROP FUNCTION touch_everything();
DROP FUNCTION touch_workflows(uuid, uuid);
DROP FUNCTION touch_workflow(uuid);
DROP TABLE workflow_versions;
DROP FUNCTION transaction_version();

-- The notifications of migration 001: a gateway reads a cached API key again after 3 seconds.
DROP TRIGGER api_keys_announce ON api_keys;
DROP TRIGGER organizations_announce ON organizations;
DROP FUNCTION announce_key_change();

-- A delivery whose dispatcher died becomes `unknown` when its deadline has passed.
ALTER TABLE deliveries DROP COLUMN sender;

-- The retention deletes by age. PostgreSQL would take an index on created_at itself for the pages of the log too, as long as
-- the table is empty when it plans them, and then read past the entries of all other sources. BRIN does not serve either:
-- its ranges keep the age of deleted rows, so every range counts as old once their space is used again.
CREATE INDEX deliveries_day ON deliveries (((created_at AT TIME ZONE 'UTC')::date));
