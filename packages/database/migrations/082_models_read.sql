-- Up Migration

-- What a model reads besides text: pdf, image.
ALTER TABLE models ADD COLUMN reads text[] NOT NULL DEFAULT '{}';
