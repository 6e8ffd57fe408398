import type { Pool } from 'pg'

/**
 * What each row of the tables that every run writes satisfies. PostgreSQL does not check it: parsing such constraints
 * took a third of the time of each statement.
 */
const ROW_RULES: Readonly<Record<string, readonly string[]>> = {
  sessions: [
    'last_finished_number BETWEEN 0 AND last_start_number',
    'is_open = (closed_at IS NULL)',
    '(lease_owner IS NULL) = (lease_until IS NULL)',
    'lease_epoch >= 0',
    'waiting_since IS NOT NULL OR last_finished_number = last_start_number',
    // Its next start waits for the payload of the cancelled one, which may have been deleted since.
    `waiting_since IS NULL OR last_finished_number < last_start_number OR coalesce((
       SELECT status = 'cancelled' FROM starts WHERE session_id = sessions.id AND number = last_finished_number
     ), true)`,
  ],
  starts: [
    "status IN ('queued', 'running', 'waiting', 'succeeded', 'failed', 'cancelled')",
    "(status IN ('succeeded', 'failed', 'cancelled')) = (finished_at IS NOT NULL)",
    "(status = 'failed') = (error IS NOT NULL)",
    "origin IN ('api', 'auto_run', 'app')",
    'number > 0 AND attempts >= 0',
    'char_length(context) <= 10000 AND char_length(request_id) BETWEEN 1 AND 200',
    'traceparent IS NULL OR char_length(traceparent) = 55',
    'tracestate IS NULL OR char_length(tracestate) <= 512',
  ],
  deliveries: [
    "kind IN ('verification', 'payload')",
    `outcome IN ('accepted', 'rejected', 'timed_out', 'unreachable', 'refused', 'invalid', 'unknown', 'in_flight')`,
    "(outcome = 'in_flight') = (finished_at IS NULL)",
    "outcome NOT IN ('accepted', 'rejected') OR status BETWEEN 0 AND 999",
    'duration_ms IS NULL OR duration_ms >= 0',
    'answer IS NULL OR char_length(answer) <= 300',
  ],
  run_steps: [
    "kind IN ('message', 'model_answer', 'tool_call', 'tool_result', 'approval_request', 'approval_decision', 'session_summary', 'note')",
    'position >= 0',
  ],
}

/** Reads all rows. Returns a sentence for each rule that some do not satisfy. */
export async function checkRows(pool: Pool): Promise<string[]> {
  const broken: string[] = []
  for (const [table, rules] of Object.entries(ROW_RULES)) {
    const counts = rules.map((rule, index) => `count(*) FILTER (WHERE (${rule}) IS NOT TRUE)::int AS "${index}"`)
    const { rows } = await pool.query<Record<string, number>>(`SELECT ${counts.join(', ')} FROM ${table}`)
    for (const [index, rule] of rules.entries()) {
      const count = rows[0]?.[index]
      if (count !== 0) broken.push(`${count} rows of ${table} do not satisfy: ${rule}`)
    }
  }
  return broken
}
