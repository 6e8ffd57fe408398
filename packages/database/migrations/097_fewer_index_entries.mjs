/**
 * Less write-ahead log for a run.
 *
 * Outside a transaction, because CONCURRENTLY needs that: nothing waits while an index is built or dropped. Each step
 * may be repeated after an interruption, which leaves an invalid index behind.
 *
 * @param {import('node-pg-migrate').MigrationBuilder} pgm
 */
export const up = (pgm) => {
  pgm.noTransaction()
  // One statement updates many rows of a page: starts that are leased together. With 30 % free, a tenth of the updates
  // went to another page, and wrote each index of the row again; with 40 %, a twentieth.
  pgm.sql('ALTER TABLE starts SET (fillfactor = 60)')
  // The wait for statements under way blocks nothing, however long it takes.
  pgm.sql('SET lock_timeout = 0')
  // A run has few deliveries: they are sorted when they are read.
  pgm.sql('DROP INDEX CONCURRENTLY IF EXISTS deliveries_of_run')
  pgm.sql('CREATE INDEX CONCURRENTLY deliveries_of_run ON deliveries (run_id) WHERE run_id IS NOT NULL')
  pgm.sql('DROP INDEX CONCURRENTLY IF EXISTS deliveries_run')
}
