/**
 * The webhook of an organization also gets an event for each run that failed or was cancelled, and for each payload
 * that waits for approval.
 *
 * Outside a transaction, because CONCURRENTLY needs that. Each step may be repeated after an interruption, which leaves
 * an invalid index behind.
 *
 * @param {import('node-pg-migrate').MigrationBuilder} pgm
 */
export const up = (pgm) => {
  pgm.noTransaction()
  pgm.sql(`ALTER TABLE notice_webhooks
    ADD COLUMN IF NOT EXISTS events text[] NOT NULL DEFAULT '{}',
    ADD COLUMN IF NOT EXISTS events_after timestamptz(3) NOT NULL DEFAULT now();`)
  // When a run failed or was cancelled. Not finished_at: an index with a column that each end of a run changes keeps
  // PostgreSQL from writing the end into the same page alone (HOT).
  pgm.sql('ALTER TABLE starts ADD COLUMN IF NOT EXISTS not_succeeded_at timestamptz(3);')
  // The wait for statements under way blocks nobody, however long it takes.
  pgm.sql('SET lock_timeout = 0')
  // Runs that succeed write nothing into it.
  pgm.sql('DROP INDEX CONCURRENTLY IF EXISTS starts_not_succeeded')
  pgm.sql(`CREATE INDEX CONCURRENTLY starts_not_succeeded ON starts (organization_id, not_succeeded_at, id)
    WHERE not_succeeded_at IS NOT NULL`)
  pgm.sql('DROP INDEX CONCURRENTLY IF EXISTS notices_due')
  pgm.sql(`CREATE INDEX CONCURRENTLY notices_due ON notices (organization_id, next_at) WHERE status = 'waiting'`)
}
