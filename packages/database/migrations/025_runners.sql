-- Up Migration

-- The runners that hold the lock of their name, or did: a lock that is free says that the process has ended, before its
-- leases expire. Runners of the previous release have no row; their leases end by time.
CREATE TABLE runners (
  owner text PRIMARY KEY
);
