/**
 * No index has the status of a start: when a run begins, PostgreSQL writes the new version into the same page, and no
 * index (HOT). Before, beginning and end of a run wrote seven index entries each.
 *
 * Outside a transaction, because CONCURRENTLY needs that: nothing waits while an index is built or dropped. Each step
 * may be repeated after an interruption, which leaves an invalid index behind.
 *
 * @param {import('node-pg-migrate').MigrationBuilder} pgm
 */
export const up = (pgm) => {
  pgm.noTransaction()
  // The wait for statements under way blocks nobody, however long it takes.
  pgm.sql('SET lock_timeout = 0')
  // Written so that PostgreSQL takes it for no statement that does not name it so: those that claim a run compare
  // finished_at, too, and would read all starts that wait.
  pgm.sql('DROP INDEX CONCURRENTLY IF EXISTS starts_unfinished')
  pgm.sql(`CREATE INDEX CONCURRENTLY starts_unfinished ON starts (organization_id, created_at DESC, id DESC)
    WHERE coalesce(finished_at, 'infinity') = 'infinity'`)
  // An error is of failed runs only; a name of who cancelled, of cancelled ones.
  pgm.sql('DROP INDEX CONCURRENTLY IF EXISTS starts_failed')
  pgm.sql(`CREATE INDEX CONCURRENTLY starts_failed ON starts (organization_id, created_at DESC, id DESC)
    WHERE error IS NOT NULL`)
  pgm.sql('DROP INDEX CONCURRENTLY IF EXISTS starts_failed_of_workflow')
  pgm.sql(`CREATE INDEX CONCURRENTLY starts_failed_of_workflow ON starts (workflow_id, created_at DESC, id DESC)
    WHERE error IS NOT NULL`)
  pgm.sql('DROP INDEX CONCURRENTLY IF EXISTS starts_cancelled')
  pgm.sql(`CREATE INDEX CONCURRENTLY starts_cancelled ON starts (organization_id, created_at DESC, id DESC)
    WHERE cancelled_by_name IS NOT NULL`)
  // That two runs of a session are never `running` at once follows from the lock of its row, under which a run is
  // claimed.
  for (const index of ['starts_list_by_status', 'starts_workflow_failed', 'starts_one_running_per_session']) {
    pgm.sql(`DROP INDEX CONCURRENTLY IF EXISTS ${index}`)
  }
  // Most deliveries are accepted, and the index of the log finds those.
  pgm.sql('DROP INDEX CONCURRENTLY IF EXISTS deliveries_problems')
  pgm.sql(`CREATE INDEX CONCURRENTLY deliveries_problems ON deliveries (source_id, outcome, created_at DESC, id DESC)
    WHERE outcome NOT IN ('in_flight', 'accepted')`)
  pgm.sql('DROP INDEX CONCURRENTLY IF EXISTS deliveries_log_by_outcome')
}
