-- Up Migration

-- The beginning of the body with which an endpoint rejected a request, for people: at most 4 KiB of it, without the
-- signing secret. Agents never read it. Null for any other outcome, and for what was recorded without it.
ALTER TABLE deliveries ADD COLUMN rejected_answer text;
