-- Up Migration

-- What the runners offer, as their settings have it: written when a runner starts, read by the application.
CREATE TABLE models (
  name             text PRIMARY KEY,
  -- PROVIDER:NAME, or `builtin`.
  model            text NOT NULL,
  is_default       boolean NOT NULL,
  data_region      text,
  -- Of its prices; null without prices.
  currency         text,
  fallback         text,
  -- Empty: all organizations.
  organization_ids uuid[] NOT NULL DEFAULT '{}'
);

-- The name of a model; null: the default.
ALTER TABLE workflows ADD COLUMN model text;

-- The models that members may choose; empty: all. Admins may choose any.
ALTER TABLE organizations ADD COLUMN offered_models text[] NOT NULL DEFAULT '{}';
