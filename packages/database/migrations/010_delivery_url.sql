-- Up Migration

-- Where a payload was sent: the source may have another URL since. Null for a verification, whose body has the URL, and
-- for payloads that were recorded without it.
ALTER TABLE deliveries ADD COLUMN request_url text;
