/**
 * The index with which old rows of what models have cost are found.
 *
 * Outside a transaction, because CONCURRENTLY needs that. It may be repeated after an interruption, which leaves an
 * invalid index behind.
 *
 * @param {import('node-pg-migrate').MigrationBuilder} pgm
 */
export const up = (pgm) => {
  pgm.noTransaction()
  // The wait for statements under way blocks no others, however long it takes.
  pgm.sql('SET lock_timeout = 0')
  pgm.sql('DROP INDEX CONCURRENTLY IF EXISTS model_spending_period')
  pgm.sql('CREATE INDEX CONCURRENTLY model_spending_period ON model_spending (period)')
}
