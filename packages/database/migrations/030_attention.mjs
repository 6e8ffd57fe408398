/**
 * What needs attention, and when that was done: a later resend was recorded, or a person said so. The indexes have only
 * what is not done, so that the overview reads just that.
 *
 * Outside a transaction, because CONCURRENTLY needs that. Each step may be repeated after an interruption, which leaves
 * an invalid index behind.
 *
 * @param {import('node-pg-migrate').MigrationBuilder} pgm
 */
export const up = (pgm) => {
  pgm.noTransaction()
  pgm.sql('ALTER TABLE deliveries ADD COLUMN IF NOT EXISTS handled_at timestamptz(3)')
  pgm.sql('ALTER TABLE starts ADD COLUMN IF NOT EXISTS handled_at timestamptz(3)')
  // The wait for statements under way blocks nobody, however long it takes.
  pgm.sql('SET lock_timeout = 0')
  pgm.sql('DROP INDEX CONCURRENTLY IF EXISTS deliveries_attention')
  pgm.sql(`CREATE INDEX CONCURRENTLY deliveries_attention ON deliveries (organization_id, created_at DESC, id DESC)
    WHERE kind = 'payload' AND handled_at IS NULL
      AND outcome IN ('rejected', 'timed_out', 'unreachable', 'refused', 'invalid', 'unknown')`)
  // A run that failed because of a delivery is found by the delivery; that of a payload which a person declined needs
  // nobody.
  pgm.sql('DROP INDEX CONCURRENTLY IF EXISTS starts_attention')
  pgm.sql(`CREATE INDEX CONCURRENTLY starts_attention ON starts (organization_id, created_at DESC, id DESC)
    WHERE error IS NOT NULL AND handled_at IS NULL
      AND error !~ '^delivery_(rejected|timed_out|unreachable|refused|invalid|unknown|declined):'`)
}
