-- Up Migration

-- A foreign key reads and locks the row that it names for each row that is inserted: seven times for a run. The
-- statements that insert these rows prove those themselves, and what the service deletes has no children any more:
-- workflows and sessions without runs. API keys are never deleted.
ALTER TABLE starts
  DROP CONSTRAINT IF EXISTS starts_organization_id_session_id_fkey,
  DROP CONSTRAINT IF EXISTS starts_organization_id_workflow_id_fkey,
  DROP CONSTRAINT IF EXISTS starts_api_key_id_fkey;
ALTER TABLE sessions
  DROP CONSTRAINT IF EXISTS sessions_organization_id_fkey,
  -- For the foreign key of `starts` only.
  DROP CONSTRAINT IF EXISTS sessions_organization_id_id_key;
ALTER TABLE deliveries DROP CONSTRAINT IF EXISTS deliveries_organization_id_fkey;

ALTER TABLE run_steps DROP CONSTRAINT IF EXISTS run_steps_run_id_fkey;

-- Who deletes a row still deletes what belongs to it, such as the journal of a run: once for a statement.
CREATE FUNCTION delete_of_organizations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM starts WHERE organization_id = ANY (ARRAY(SELECT id FROM deleted));
  DELETE FROM sessions WHERE organization_id = ANY (ARRAY(SELECT id FROM deleted));
  DELETE FROM deliveries WHERE organization_id = ANY (ARRAY(SELECT id FROM deleted));
  RETURN NULL;
END $$;
CREATE FUNCTION delete_of_workflows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM starts WHERE workflow_id = ANY (ARRAY(SELECT id FROM deleted));
  RETURN NULL;
END $$;
CREATE FUNCTION delete_of_sessions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM starts WHERE session_id = ANY (ARRAY(SELECT id FROM deleted));
  RETURN NULL;
END $$;
CREATE FUNCTION delete_of_starts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM run_steps WHERE run_id = ANY (ARRAY(SELECT id FROM deleted));
  RETURN NULL;
END $$;
CREATE TRIGGER delete_of_organizations AFTER DELETE ON organizations
  REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION delete_of_organizations();
CREATE TRIGGER delete_of_workflows AFTER DELETE ON workflows
  REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION delete_of_workflows();
CREATE TRIGGER delete_of_sessions AFTER DELETE ON sessions
  REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION delete_of_sessions();
CREATE TRIGGER delete_of_starts AFTER DELETE ON starts
  REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION delete_of_starts();

-- Room for the later versions of a row in its page: 9 of 10 updates then write no index, instead of half of them.
ALTER TABLE starts SET (fillfactor = 70);
ALTER TABLE sessions SET (fillfactor = 70);
