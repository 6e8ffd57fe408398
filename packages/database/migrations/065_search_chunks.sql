-- Up Migration

-- The search index: consecutive runs, or deliveries, of an organization with the words of their texts as a Bloom
-- filter. A word is looked for in the filters, and compared in the few chunks that may have it. An entry of a GIN index
-- for each word would cost each start some 20 writes and 0.5 KB; this costs about 40 bytes, written later by a timer.
CREATE TABLE search_chunks (
  organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  kind            text NOT NULL,
  -- Of the oldest and the newest row.
  first_at        timestamptz(3) NOT NULL,
  first_id        uuid NOT NULL,
  last_at         timestamptz(3) NOT NULL,
  last_id         uuid NOT NULL,
  ids             uuid[] NOT NULL,
  -- A bit that is 0 says that a word is in none of the texts: see search-words.ts.
  words           bytea NOT NULL,
  PRIMARY KEY (organization_id, kind, first_at, first_id)
);
-- The filter in the row, uncompressed, so that a bit is read without fetching the rest; the ids beside it.
ALTER TABLE search_chunks ALTER COLUMN words SET STORAGE PLAIN, ALTER COLUMN ids SET STORAGE EXTERNAL;
