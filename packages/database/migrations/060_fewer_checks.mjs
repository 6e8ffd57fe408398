/**
 * PostgreSQL parses the CHECK constraints of a table for each statement that writes it: a third of the time of the
 * statements of a run. What they said is guaranteed by the few statements that write these tables, and the trials
 * compare all rows with it (infra/trials/shared/row-rules.ts).
 *
 * Outside a transaction: each table is locked alone, and only for the moment of its change. May be repeated.
 *
 * @param {import('node-pg-migrate').MigrationBuilder} pgm
 */
export const up = (pgm) => {
  pgm.noTransaction()
  const checks = {
    sessions: 'check check1 check2 last_start_number_check lease_epoch_check',
    starts:
      'attempts_check check check1 context_check number_check origin_check request_id_check status_check traceparent_check tracestate_check',
    deliveries: 'answer_check check check1 duration_ms_check kind_check outcome_check status_check',
    run_steps: 'kind_check position_check',
  }
  for (const [table, names] of Object.entries(checks)) {
    const drops = names.split(' ').map((name) => `DROP CONSTRAINT IF EXISTS ${table}_${name}`)
    pgm.sql(`ALTER TABLE ${table} ${drops.join(', ')}`)
  }
}
