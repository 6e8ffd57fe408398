import { PrismaPg } from '@prisma/adapter-pg'
import { Pool, type QueryResult, type QueryResultRow } from 'pg'
import { PrismaClient } from './generated/client.ts'

/** How to reach Postgres, and how long to wait for it. */
export interface DatabaseOptions {
  url: string
  /** Shown in `pg_stat_activity`, so that an operator sees which service holds a connection. */
  applicationName: string
  /** Connections of this process at most. */
  maxConnections?: number
  /** How long one statement may take, on the server and as seen from here. Default 5,000: the API never hangs longer. */
  statementTimeoutMs?: number
  /** Called when an idle connection breaks; the pool replaces it by itself. */
  onError?: (error: Error) => void
}

/** The one connection pool of a process; Prisma runs on the same pool. */
export interface Database {
  readonly pool: Pool
  readonly prisma: PrismaClient
  /** Rejects unless Postgres answers a query. */
  ping(): Promise<void>
  close(): Promise<void>
}

/**
 * A statement that Postgres plans once for each connection: a name and its text. Arrays stand in it as `(SELECT $1::…)`:
 * where Postgres sees how long one is, it thinks a plan for just that length cheaper and plans the statement anew at each
 * call, which takes longer than carrying it out.
 */
export interface NamedStatement {
  readonly name: string
  readonly text: string
}

// Every statement of a service finds its rows by index. Of a table that is still small, Postgres thinks a scan cheaper, and
// a connection keeps that plan for its named statements until the next ANALYZE, however fast the table grows meanwhile.
// They read few rows, most of them in memory, where a page at random costs what the next one costs. Where Postgres thinks it
// dearer, it collects the rows of a workflow in a bitmap and sorts them, in place of reading them in their index's order.
const PLANNER_OPTIONS = '-c enable_seqscan=off -c random_page_cost=1'

/** Opens the pool. Connects lazily: a database that is away fails the query, not the construction. */
export function createDatabase(options: DatabaseOptions): Database {
  const { statementTimeoutMs = 5_000, onError = () => {} } = options
  const pool = new Pool({
    connectionString: options.url,
    application_name: options.applicationName,
    max: options.maxConnections ?? 20,
    // Kept open, so that what comes after a quiet time does not wait for a connection and for its plans.
    min: 2,
    connectionTimeoutMillis: 4_000,
    query_timeout: statementTimeoutMs,
    statement_timeout: statementTimeoutMs,
    lock_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: 2 * statementTimeoutMs,
    keepAlive: true,
    options: PLANNER_OPTIONS,
  })
  pool.on('error', onError)
  const prisma = new PrismaClient({
    adapter: new PrismaPg(pool, { onPoolError: onError, onConnectionError: onError, disposeExternalPool: false }),
  })
  return {
    pool,
    prisma,
    ping: async () => {
      await pool.query('SELECT 1')
    },
    close: async () => {
      await prisma.$disconnect()
      await pool.end()
    },
  }
}

/** Runs a named statement on the pool: the way of every hot path. */
export function runStatement<Row extends QueryResultRow>(
  db: Pick<Database, 'pool'>,
  statement: NamedStatement,
  values: unknown[],
): Promise<QueryResult<Row>> {
  return db.pool.query<Row>({ name: statement.name, text: statement.text, values })
}
