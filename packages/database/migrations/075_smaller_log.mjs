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
  // Message and notes that were written with the step after them, in one row.
  pgm.sql('ALTER TABLE run_steps ADD COLUMN IF NOT EXISTS earlier_steps json')
  // The wait for statements under way blocks nothing, however long it takes.
  pgm.sql('SET lock_timeout = 0')
  // The end of a run changes finished_at. Without an index that has it, that writes no index (HOT). Unfinished starts
  // are found by their sessions, which have work.
  pgm.sql('DROP INDEX CONCURRENTLY IF EXISTS starts_unfinished')
  // In ascending order: PostgreSQL fills a page whose entries arrive in order, and leaves one half empty whose entries
  // arrive in descending order. A list reads them backwards.
  const replaced = [
    ['starts', 'starts_list', 'starts_of_organization', 'organization_id'],
    ['starts', 'starts_workflow', 'starts_of_workflow', 'workflow_id'],
    ['sessions', 'sessions_list', 'sessions_of_organization', 'organization_id'],
    ['deliveries', 'deliveries_log', 'deliveries_of_source', 'source_id'],
  ]
  for (const [table, earlier, index, column] of replaced) {
    pgm.sql(`DROP INDEX CONCURRENTLY IF EXISTS ${index}`)
    pgm.sql(`CREATE INDEX CONCURRENTLY ${index} ON ${table} (${column}, created_at, id)`)
    pgm.sql(`DROP INDEX CONCURRENTLY IF EXISTS ${earlier}`)
  }
}
