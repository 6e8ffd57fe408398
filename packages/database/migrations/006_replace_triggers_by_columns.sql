-- Up Migration

-- packages/database writes these versions itself, in the transaction that changes the data; see workflows.ts. A
-- constant default for the rows that exist, so that PostgreSQL does not rewrite the table.
ALTER TABLE workflows ADD COLUMN version uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000';
ALTER TABLE workflows ALTER COLUMN version SET DEFAULT gen_random_uuid();

-- The retention deletes by age. PostgreSQL would take an index on created_at itself for the pages of the log too, as
-- long as the table is empty when it plans them, and then read past the entries of all other sources. BRIN does not
-- serve either: its ranges keep the age of deleted rows, so every range counts as old once their space is used again.
CREATE INDEX deliveries_day ON deliveries (((created_at AT TIME ZONE 'UTC')::date));
