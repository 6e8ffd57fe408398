-- Records the prompt of a request to a model, once for all requests in turn that have it. A run that was deleted
--   meanwhile gets no row.
-- By hand: compares the text with the last one without reading it into the runner.
-- Parameters: $1 run, $2 position, $3 prompt. Rows: none.
WITH last AS MATERIALIZED (
  SELECT position, prompt::text AS prompt FROM run_prompts WHERE run_id = $1 ORDER BY position DESC LIMIT 1
),
used_again AS (
  UPDATE run_prompts SET asked_position = $2
  WHERE run_id = $1 AND position = (SELECT position FROM last WHERE prompt = $3) RETURNING position
)
INSERT INTO run_prompts (run_id, position, asked_position, prompt)
SELECT id, $2, $2, $3::json FROM starts WHERE id = $1 AND (SELECT true FROM used_again) IS NULL
ON CONFLICT (run_id, position) DO UPDATE SET prompt = excluded.prompt
