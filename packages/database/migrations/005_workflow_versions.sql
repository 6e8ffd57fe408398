-- Up Migration

-- Migration 006 drops everything that this one creates, except organizations.users_version.

-- A version that names the current transaction. Its start time is part of it, because transaction numbers can repeat after a
-- failover or a restored backup.
CREATE FUNCTION transaction_version() RETURNS text LANGUAGE sql STABLE AS $$
  SELECT pg_current_xact_id()::text || '@' || extract(epoch FROM now())::text
$$;

-- The version of a workflow, and that of an organization's users, identify the content of a workflow document: triggers write
-- the transaction's version whenever a part of the document changes, under a lock of the workflow's row.
CREATE TABLE workflow_versions (
  workflow_id uuid PRIMARY KEY REFERENCES workflows ON DELETE CASCADE,
  version     text NOT NULL
) WITH (fillfactor = 70);
INSERT INTO workflow_versions SELECT id, transaction_version() FROM workflows;
ALTER TABLE organizations ADD COLUMN users_version text NOT NULL DEFAULT transaction_version();

-- Writes once for each transaction and workflow. Locks the workflow's row first, like an UPDATE of the workflow itself.
CREATE FUNCTION touch_workflow(touched_id uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  current_version text := transaction_version();
BEGIN
  IF EXISTS (SELECT FROM workflow_versions WHERE workflow_id = touched_id AND version <> current_version) THEN
    PERFORM FROM workflows WHERE id = touched_id FOR NO KEY UPDATE;
    UPDATE workflow_versions SET version = current_version WHERE workflow_id = touched_id;
  END IF;
END
$$;

-- The lower id first, so that two transactions do not deadlock.
CREATE FUNCTION touch_workflows(one_id uuid, other_id uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM touch_workflow(least(one_id, other_id));
  IF one_id <> other_id THEN
    PERFORM touch_workflow(greatest(one_id, other_id));
  END IF;
END
$$;

CREATE FUNCTION begin_workflow_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO workflow_versions (workflow_id, version) VALUES (NEW.id, transaction_version());
  RETURN NULL;
END
$$;
CREATE TRIGGER workflows_begin_version AFTER INSERT
  ON workflows FOR EACH ROW EXECUTE FUNCTION begin_workflow_version();

CREATE FUNCTION touch_workflow_itself() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM touch_workflow(NEW.id);
  RETURN NULL;
END
$$;
-- Without auto_run_anchor_at, auto_run_next_at and search_text, which the document does not show.
CREATE TRIGGER workflows_version AFTER UPDATE
  ON workflows FOR EACH ROW WHEN (
    (OLD.organization_id, OLD.name, OLD.description, OLD.scope, OLD.is_active, OLD.auto_run_enabled,
     OLD.auto_run_frequency, OLD.created_at, OLD.updated_at)
    IS DISTINCT FROM
    (NEW.organization_id, NEW.name, NEW.description, NEW.scope, NEW.is_active, NEW.auto_run_enabled,
     NEW.auto_run_frequency, NEW.created_at, NEW.updated_at)
  ) EXECUTE FUNCTION touch_workflow_itself();

CREATE FUNCTION touch_workflow_of_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM touch_workflows(coalesce(OLD.workflow_id, NEW.workflow_id), coalesce(NEW.workflow_id, OLD.workflow_id));
  RETURN NULL;
END
$$;
CREATE TRIGGER workflow_users_version AFTER INSERT OR DELETE OR UPDATE
  ON workflow_users FOR EACH ROW EXECUTE FUNCTION touch_workflow_of_row();
CREATE TRIGGER triggers_version AFTER INSERT OR DELETE OR UPDATE
  ON triggers FOR EACH ROW EXECUTE FUNCTION touch_workflow_of_row();
-- Without the content, which the document does not show.
CREATE TRIGGER files_version AFTER INSERT OR DELETE OR UPDATE OF id, workflow_id, name, path
  ON files FOR EACH ROW EXECUTE FUNCTION touch_workflow_of_row();

-- Locks the trigger's row, so that it does not move to another workflow meanwhile.
CREATE FUNCTION touch_workflow_of_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  one_trigger_id   uuid := coalesce(OLD.trigger_id, NEW.trigger_id);
  other_trigger_id uuid := coalesce(NEW.trigger_id, OLD.trigger_id);
  one_id           uuid;
  other_id         uuid;
BEGIN
  SELECT workflow_id INTO one_id FROM triggers WHERE id = one_trigger_id FOR NO KEY UPDATE;
  other_id := one_id;
  IF one_trigger_id <> other_trigger_id THEN
    SELECT workflow_id INTO other_id FROM triggers WHERE id = other_trigger_id FOR NO KEY UPDATE;
  END IF;
  PERFORM touch_workflows(coalesce(one_id, other_id), coalesce(other_id, one_id));
  RETURN NULL;
END
$$;
CREATE TRIGGER trigger_events_version AFTER INSERT OR DELETE OR UPDATE
  ON trigger_events FOR EACH ROW EXECUTE FUNCTION touch_workflow_of_trigger();
CREATE TRIGGER subagent_sources_version AFTER INSERT OR DELETE OR UPDATE
  ON subagent_sources FOR EACH ROW EXECUTE FUNCTION touch_workflow_of_trigger();

-- One version for all users of an organization: writing the version of each workflow that has the changed user would miss a
-- workflow that gets the user at the same time.
CREATE FUNCTION touch_users_of_organization() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  current_version text := transaction_version();
  one_id          uuid := coalesce(OLD.organization_id, NEW.organization_id);
  other_id        uuid := coalesce(NEW.organization_id, OLD.organization_id);
BEGIN
  UPDATE organizations SET users_version = current_version
  WHERE id = least(one_id, other_id) AND users_version <> current_version;
  IF one_id <> other_id THEN
    UPDATE organizations SET users_version = current_version
    WHERE id = greatest(one_id, other_id) AND users_version <> current_version;
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER users_version AFTER INSERT OR DELETE OR UPDATE
  ON users FOR EACH ROW EXECUTE FUNCTION touch_users_of_organization();

-- TRUNCATE does not name rows, so every document may have changed.
CREATE FUNCTION touch_everything() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE workflow_versions SET version = transaction_version();
  UPDATE organizations SET users_version = transaction_version();
  RETURN NULL;
END
$$;
CREATE TRIGGER users_truncate AFTER TRUNCATE ON users EXECUTE FUNCTION touch_everything();
CREATE TRIGGER workflow_users_truncate AFTER TRUNCATE ON workflow_users EXECUTE FUNCTION touch_everything();
CREATE TRIGGER triggers_truncate AFTER TRUNCATE ON triggers EXECUTE FUNCTION touch_everything();
CREATE TRIGGER trigger_events_truncate AFTER TRUNCATE ON trigger_events EXECUTE FUNCTION touch_everything();
CREATE TRIGGER subagent_sources_truncate AFTER TRUNCATE ON subagent_sources EXECUTE FUNCTION touch_everything();
CREATE TRIGGER files_truncate AFTER TRUNCATE ON files EXECUTE FUNCTION touch_everything();
