import { splitHosts } from '@workflow-service/contract'
import { Client } from 'pg'
import { markUnavailable } from './database-unavailable.ts'

/** Shorter than the connection's own limit, so that a host that does not answer leaves time for another. */
const PROBE_TIMEOUT_MS = 2_000
/** After a change of the primary, a pool opens many connections at once: one probe serves them all. */
const PROBE_REUSE_MS = 1_000

/**
 * Reads a URL that may name several hosts of a cluster. With several, each new connection goes to the one that accepts
 * writes, as libpq does with `target_session_attrs=read-write`; when none does, connecting fails like that to a server
 * that is down. One host alone is not asked. Each error that prevents a connection means that the database is
 * unavailable.
 */
export function toPrimary(url: string) {
  const urls = splitHosts(url)
  const [connectionString] = urls
  const findPrimary = urls.length > 1 ? createFinder(urls) : undefined
  class PrimaryClient extends Client {
    override connect(): Promise<this>
    override connect(callback: (error: Error) => void): void
    override connect(callback?: (error: Error) => void): Promise<this> | void {
      if (!callback) {
        return new Promise((resolve, reject) => {
          this.connect((error?: Error) => (error ? reject(error) : resolve(this)))
        })
      }
      // In the same turn as pg's: the pool listens for errors from then on, and the server may end the connection.
      const settle = (error: Error): void => callback(markUnavailable(error))
      if (!findPrimary) return super.connect(settle)
      void findPrimary().then((host) => {
        Object.assign(this, host)
        return super.connect(settle)
      }, settle)
    }
  }
  return {
    /** The URL with its first host: user, database and options are the same for all. */
    connectionString,
    /** Connects to the host that accepts writes. */
    Client: PrimaryClient,
  }
}

interface Host {
  readonly host: string
  readonly port: number
}

function createFinder(urls: readonly string[]): () => Promise<Host> {
  let finding: Promise<Host> | undefined
  const find = async (): Promise<Host> => {
    try {
      const found = await Promise.any(urls.map(probe))
      setTimeout(() => (finding = undefined), PROBE_REUSE_MS).unref()
      return found
    } catch (error) {
      finding = undefined
      // All failed: the first error says why as well as any.
      throw error instanceof AggregateError ? error.errors[0] : error
    }
  }
  return () => (finding ??= find())
}

/** Resolves if the server accepts writes. */
async function probe(connectionString: string): Promise<Host> {
  const client = new Client({
    connectionString,
    application_name: 'find-primary',
    connectionTimeoutMillis: PROBE_TIMEOUT_MS,
    query_timeout: PROBE_TIMEOUT_MS,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ isReadOnly: string }>(
      `SELECT current_setting('transaction_read_only') AS "isReadOnly"`,
    )
    if (rows[0]?.isReadOnly === 'on') throw standbyError(client)
    return { host: client.host, port: client.port }
  } finally {
    void client.end().catch(() => {})
  }
}

/** Has the code of a server that is not there, so that callers try again. */
function standbyError({ host, port }: Host): Error {
  return Object.assign(new Error(`PostgreSQL at ${host}:${port} accepts no writes: it is a standby`), {
    code: 'ECONNREFUSED',
  })
}
