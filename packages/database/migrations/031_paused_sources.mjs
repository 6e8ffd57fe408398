/**
 * A paused webhook source gets no payloads: its runs are parked until a person resumes it.
 *
 * Outside a transaction, because CONCURRENTLY needs that. Each step may be repeated after an interruption, which leaves
 * an invalid index behind.
 *
 * @param {import('node-pg-migrate').MigrationBuilder} pgm
 */
export const up = (pgm) => {
  pgm.noTransaction()
  pgm.sql(`ALTER TABLE webhook_sources
    ADD COLUMN IF NOT EXISTS paused_at timestamptz(3),
    ADD COLUMN IF NOT EXISTS paused_by_name text,
    ADD COLUMN IF NOT EXISTS resumed_at timestamptz(3);`)
  // The source for which the run of a session waits. It may stay afterwards, without a meaning.
  pgm.sql('ALTER TABLE sessions ADD COLUMN IF NOT EXISTS paused_source_id uuid;')
  // The wait for statements under way blocks nobody, however long it takes.
  pgm.sql('SET lock_timeout = 0')
  pgm.sql('DROP INDEX CONCURRENTLY IF EXISTS sessions_paused')
  pgm.sql(`CREATE INDEX CONCURRENTLY sessions_paused ON sessions (paused_source_id, id)
    WHERE paused_source_id IS NOT NULL`)
  pgm.sql('DROP INDEX CONCURRENTLY IF EXISTS webhook_sources_resumed')
  pgm.sql(`CREATE INDEX CONCURRENTLY webhook_sources_resumed ON webhook_sources (resumed_at)
    WHERE resumed_at IS NOT NULL`)
}
