-- Up Migration

-- Headers of the answer, as an object: those by which people tell what answered, at most 2 KiB, without secrets.
ALTER TABLE deliveries ADD COLUMN answer_headers json;
