import type { ClientBase } from 'pg'

/** What a server, database or role may limit. `transaction_timeout` exists since PostgreSQL 17. */
const LIMITS = '{statement,transaction,idle_in_transaction_session,idle_session}'

/**
 * Lifts the limits that the server knows, until the transaction or the connection ends. Behind PgBouncer, what is set
 * for the connection holds for those who use it next.
 */
export async function liftTimeLimits(client: ClientBase, until: 'transaction' | 'connection'): Promise<void> {
  const isLocal = until === 'transaction'
  // Without parameters: with them, the statement's portal stays open, and keeps its snapshot. It locks no table.
  await client.query(`
    SELECT set_config(name || '_timeout', '0', ${isLocal}) FROM unnest('${LIMITS}'::text[]) AS name
    WHERE current_setting(name || '_timeout', true) IS NOT NULL`)
}
