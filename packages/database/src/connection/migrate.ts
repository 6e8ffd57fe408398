import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Client, DatabaseError } from 'pg'
import { toPrimary } from './connect-to-primary.ts'
import { liftTimeLimits } from './time-limits.ts'

export interface MigrateOptions {
  databaseUrl: string
  /** Called before each further attempt, with a sentence that names the connection that the last one waited for. */
  onRetry?: (message: string) => void
  /** How long a migration waits for a lock before it lets others pass. Default 5,000. */
  lockTimeoutMs?: number
  /** How often a migration is tried. Default 10. */
  maxAttempts?: number
  /** The pause after the first attempt; it doubles up to 5 s. Default 1,000. */
  firstRetryMs?: number
}

/** The last attempt had to wait, too. The message names the blocking connections and says what to do. */
export class MigrationBlockedError extends Error {
  override name = 'MigrationBlockedError'
}

const MIGRATIONS_FOLDER = fileURLToPath(new URL('../../migrations', import.meta.url))
const MAX_RETRY_MS = 5_000
/** The advisory lock of node-pg-migrate, by which concurrent calls wait for each other. */
const ADVISORY_LOCK = 7_241_865_325_823_964n
const ADVISORY_LOCK_TIMEOUT_MS = 500
/** `lock_not_available`, and `deadlock_detected`: another transaction locks the same tables in another order. */
const LOCK_ERRORS: ReadonlySet<string | undefined> = new Set(['55P03', '40P01'])

/**
 * Applies the migrations that the database does not have yet, and resolves to their names. An advisory lock makes
 * concurrent calls wait for each other. Needs no superuser and no extension, only the right to create tables: see
 * `checkServer`. Closes its connections before it settles.
 *
 * A migration that waits for an exclusive lock makes all later readers of the table wait behind it. So it gives up
 * after `lockTimeoutMs`, is rolled back, and is tried again, as it is after a deadlock.
 * @throws MigrationBlockedError
 */
export async function migrate(options: MigrateOptions): Promise<{ applied: string[] }> {
  const { databaseUrl, lockTimeoutMs = 5_000 } = options
  const client = await connect(databaseUrl)
  try {
    const limitWaits = () => client.query(`SET lock_timeout = ${lockTimeoutMs}`)
    // For CREATE INDEX CONCURRENTLY, the other migration waits for every statement, this one too: it ends before
    // PostgreSQL looks for a deadlock, after 1 s.
    await client.query(`SET lock_timeout = ${Math.min(lockTimeoutMs, ADVISORY_LOCK_TIMEOUT_MS)}`)
    // As often as it takes: each lock that the other migration waits for has its own limit.
    const untilOthersEnd = { ...options, maxAttempts: Infinity }
    await withRetries(client, untilOthersEnd, () => client.query(`SELECT pg_advisory_lock(${ADVISORY_LOCK})`))
    const applied: string[] = []
    for (;;) {
      // A migration may set another limit for itself.
      await limitWaits()
      const name = await withRetries(client, options, () => applyNext(client))
      if (name === undefined) return { applied }
      applied.push(name)
    }
  } finally {
    await client.end()
  }
}

/** Applies the next migration in a transaction. Resolves to its name; undefined if there is none. */
async function applyNext(client: Client): Promise<string | undefined> {
  // Imported here, because it takes 10 MiB of memory that a service does not need.
  const { runner } = await import('node-pg-migrate')
  const silent = { info: () => {}, warn: () => {}, error: () => {} }
  const [migration] = await runner({
    dbClient: client,
    dir: MIGRATIONS_FOLDER,
    direction: 'up',
    count: 1,
    migrationsTable: 'schema_migrations',
    noLock: true,
    checkOrder: true,
    logger: silent,
  })
  return migration?.name
}

/** Runs the work again while it fails because another connection holds a lock. */
async function withRetries<Result>(
  client: Client,
  { databaseUrl, onRetry = () => {}, maxAttempts = 10, firstRetryMs = 1_000 }: MigrateOptions,
  work: () => Promise<Result>,
): Promise<Result> {
  let retryMs = firstRetryMs
  for (let attempt = 1; ; attempt += 1) {
    const observer = await observeBlockers(client, databaseUrl)
    try {
      return await work()
    } catch (error) {
      await client.query('ROLLBACK')
      if (!(error instanceof DatabaseError) || !LOCK_ERRORS.has(error.code)) throw error
      const message = `The migration waits for ${observer.blockers() || 'a lock that another connection holds'}`
      if (attempt >= maxAttempts) {
        const remedy = 'End that connection or its transaction, for example with SELECT pg_terminate_backend(PROCESS)'
        throw new MigrationBlockedError(`${message}. ${remedy}, and migrate again.`, { cause: error })
      }
      const ofAll = maxAttempts === Infinity ? '' : ` of ${maxAttempts}`
      onRetry(`${message}; attempt ${attempt + 1}${ofAll} follows.`)
    } finally {
      await observer.stop()
    }
    await sleep(Math.min(retryMs, MAX_RETRY_MS))
    retryMs *= 2
  }
}

/** An attempt that takes less long is not observed, which needs a second connection. */
const OBSERVE_AFTER_MS = 200
const OBSERVE_INTERVAL_MS = 100
const FIND_BLOCKERS = `
  SELECT coalesce(
      (SELECT format('a lock on %s that is held by', relation::regclass) FROM pg_locks WHERE pid = $1 AND NOT granted AND relation IS NOT NULL LIMIT 1),
      (SELECT 'another migration:' FROM pg_locks WHERE pid = $1 AND NOT granted AND locktype = 'advisory' LIMIT 1),
      'a lock that is held by') AS lock,
    format('process %s (%s, %s since %s): %s', pid, coalesce(nullif(application_name, ''), usename), state,
      to_char(state_change AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), left(query, 200)) AS blocker
  FROM pg_stat_activity WHERE pid = ANY (pg_blocking_pids($1)) ORDER BY xact_start LIMIT 5`

/** Remembers for what the client waited last, and which connections blocked it. */
async function observeBlockers(
  client: Client,
  databaseUrl: string,
): Promise<{ blockers(): string; stop(): Promise<void> }> {
  const stopping = new AbortController()
  let last = ''
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  const observing = (async () => {
    await sleep(OBSERVE_AFTER_MS, undefined, { signal: stopping.signal })
    const observer = await connect(databaseUrl)
    try {
      while (!stopping.signal.aborted) {
        const found = await observer.query<{ lock: string; blocker: string }>(FIND_BLOCKERS, [rows[0]?.pid])
        const [first] = found.rows
        if (first) last = `${first.lock} ${found.rows.map(({ blocker }) => blocker).join('; ')}`
        await sleep(OBSERVE_INTERVAL_MS, undefined, { signal: stopping.signal }).catch(() => {})
      }
    } finally {
      await observer.end()
    }
    // The message only lacks the names then.
  })().catch(() => {})
  return {
    blockers: () => last,
    stop: async () => {
      stopping.abort()
      await observing
    },
  }
}

async function connect(databaseUrl: string): Promise<Client> {
  const primary = toPrimary(databaseUrl)
  const client = new primary.Client({ connectionString: primary.connectionString, application_name: 'migrate' })
  // An unhandled `error` event (the server stopped while the connection was closing) would crash the process.
  client.on('error', () => {})
  await client.connect()
  // Before it may come a schema that is named like the role.
  await client.query('SET search_path = public')
  await liftTimeLimits(client, 'connection')
  return client
}
