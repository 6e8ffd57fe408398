import { createRequire } from 'node:module'
import type * as adapter from '@prisma/adapter-pg'
import { type Client, Pool, type PoolClient } from 'pg'
import { toPrimary } from './connect-to-primary.ts'
import type * as client from '../generated/client.ts'
import { poolForPrisma } from './prisma-pool.ts'

const require = createRequire(import.meta.url)

/** How to connect to PostgreSQL. */
export interface DatabaseOptions {
  /** May name several hosts of a cluster: see `toPrimary`. */
  url: string
  /** The connections' `application_name`: shows in `pg_stat_activity` which service owns a connection. */
  applicationName: string
  /** Maximum connections of this process. Default 20. */
  maxConnections?: number
  /** Maximum time of one statement. Default 5,000. */
  statementTimeoutMs?: number
  /** Called when an idle connection breaks. The pool replaces the connection by itself. */
  onError?: (error: Error) => void
}

/** The connection pool of a process. Gateway, runner and dispatcher have no more: Prisma would double their memory. */
export interface SqlDatabase {
  readonly pool: Pool
  /** Creates a connection outside of the pool, with its settings. The caller connects and ends it. */
  createClient(): Client
  /** Rejects unless PostgreSQL answers a query. */
  ping(): Promise<void>
  close(): Promise<void>
}

/** The pool, and Prisma on it, which is loaded when it is first used. */
export interface Database extends SqlDatabase {
  readonly prisma: client.PrismaClient
}

/**
 * Planner settings of every connection. All statements of the services read few rows, by index:
 *
 * - `plan_cache_mode`: plans a named statement once for each connection. By default, PostgreSQL may plan it again for
 *   each call, which takes longer than executing it.
 * - `enable_seqscan`, `enable_hashjoin`, `enable_mergejoin`: leave nested loops with index look-ups. On a small table
 *   PostgreSQL estimates reading the whole table or index as cheaper, and a connection keeps that plan until the next
 *   ANALYZE, however fast the table grows.
 * - `random_page_cost`: most pages are in memory. With a higher cost, PostgreSQL collects the rows of a workflow in a
 *   bitmap and sorts them, instead of reading them in the order of their index.
 * - `jit`: up to PostgreSQL 17, what must read a whole table costs more than 10,000,000,000 without sequential scans,
 *   for which the server compiles the statement each time, in 50 to 400 ms.
 */
const PLANNER_OPTIONS =
  '-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c random_page_cost=1 -c jit=off'

/**
 * What the server, database or role may set otherwise:
 *
 * - `TimeZone`, `DateStyle`: Prisma reads and writes times as UTC and ignores their offset, pg reads ISO dates only,
 *   and `date_trunc` begins an hour at 30 minutes past in some zones.
 * - `extra_float_digits`: with fewer, the epoch of a lease is rounded, and no runner owns its lease.
 * - `search_path`: the tables are in "public", where Prisma looks, also beside a schema that is named like the role.
 * - `default_transaction_isolation`: statements wait for locks and then see the new rows, where stricter levels fail.
 */
const SESSION_OPTIONS =
  '-c search_path=public -c TimeZone=UTC -c DateStyle=ISO -c extra_float_digits=1 -c default_transaction_isolation=read\\ committed'

/** Creates the pool. It connects lazily: while the database is unavailable, the queries fail, not this call. */
export function createDatabase(options: DatabaseOptions): Database {
  const { statementTimeoutMs = 5_000, onError = () => {} } = options
  const primary = toPrimary(options.url)
  const connection = {
    ...primary,
    ...addOptions(primary.connectionString),
    application_name: options.applicationName,
    connectionTimeoutMillis: 4_000,
    // Later than the server's, so that a slow statement ends with the server's error, which says that nothing was
    // written.
    query_timeout: statementTimeoutMs + 500,
    statement_timeout: statementTimeoutMs,
    lock_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: 2 * statementTimeoutMs,
    keepAlive: true,
  }
  const pool = new Pool({
    ...connection,
    max: options.maxConnections ?? 20,
    // Idle connections are kept, so that the first query after a quiet time waits for neither a connection nor its
    // plans.
    min: 2,
  })
  pool.on('error', onError)
  // An unhandled `error` event (connection lost while it is in use, even before its first statement) would crash the
  // process; the next statement rejects anyway.
  pool.on('connect', (client) => client.on('error', () => {}))
  let prisma: client.PrismaClient | undefined
  return {
    pool,
    get prisma() {
      return (prisma ??= createPrismaClient(pool, onError))
    },
    createClient: () => new connection.Client(connection),
    ping: async () => {
      await pool.query('SELECT 1')
    },
    close: async () => {
      const closing = prisma
      // Its plans of queries take 10 MB, and an object that is closed may be kept.
      prisma = undefined
      await closing?.$disconnect()
      await pool.end()
    },
  }
}

/** The options of connections to this URL: pg would take those that the URL names in place of ours. */
function addOptions(connectionString: string) {
  const options = `${PLANNER_OPTIONS} ${SESSION_OPTIONS}`
  const parsed = URL.parse(connectionString)
  const given = parsed?.searchParams.get('options')
  if (!parsed || !given) return { connectionString, options }
  parsed.searchParams.set('options', `${given} ${options}`)
  return { connectionString: parsed.href }
}

/** Returns the NULL of a JSON column for Prisma, whose own `null` is the JSON value. Loads Prisma. */
export function databaseNull() {
  return (require('../generated/client.ts') as typeof client).Prisma.DbNull
}

function createPrismaClient(pool: Pool, onError: (error: Error) => void): client.PrismaClient {
  const { PrismaPg } = require('@prisma/adapter-pg') as typeof adapter
  const { PrismaClient } = require('../generated/client.ts') as typeof client
  return new PrismaClient({
    adapter: new PrismaPg(poolForPrisma(pool), {
      onPoolError: onError,
      onConnectionError: onError,
      disposeExternalPool: false,
    }),
  })
}

/** What a function needs that runs statements or transactions. */
export type Db = Pick<Database, 'pool'>
export type PrismaDb = Pick<Database, 'prisma'>

/** The pool, or the connection of a transaction. */
export type Queryable = Pick<PoolClient, 'query'>

/**
 * Reads the time of the database's clock, by which processes agree whose own clocks differ; in a transaction, that of
 * its beginning.
 */
export async function readClock(client: Queryable): Promise<Date> {
  const { rows } = await client.query<{ now: Date }>('SELECT now()::timestamptz(3) AS now')
  return rows[0]!.now
}

/** What a function needs that runs one statement, also inside a transaction of the caller. */
export interface Connection {
  readonly pool: Queryable
}
