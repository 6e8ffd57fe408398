-- The triggers of the row :WORKFLOW as JSON, in the order of the public API's document. A fragment.
(
  SELECT coalesce(json_agg(item), '[]') FROM (
    SELECT id, name, is_active,
      (
        SELECT row_to_json(item) FROM (SELECT source_slug AS slug, source_name AS name) AS item
      ) AS trigger_source,
      (
        SELECT coalesce(json_agg(item), '[]') FROM (
          SELECT slug, name FROM trigger_events
          WHERE trigger_events.trigger_id = triggers.id ORDER BY position
        ) AS item
      ) AS events,
      filters, input_message,
      (
        SELECT coalesce(json_agg(item), '[]') FROM (
          SELECT source_id AS id, name, type FROM subagent_sources
          WHERE subagent_sources.trigger_id = triggers.id
          ORDER BY type = 'platform_internal', name, position
        ) AS item
      ) AS subagent_sources
    FROM triggers WHERE triggers.workflow_id = :WORKFLOW.id ORDER BY created_at, id
  ) AS item
)
