import { randomUUID } from 'node:crypto'
import { connect } from 'amqplib'
import autocannon from 'autocannon'
import { Client, Pool } from 'pg'
import { runLoad, send } from '../shared/load.ts'

/** Requests of one kind to one server. */
export interface RequestLoad {
  readonly url: string
  /** Requested in turn by each connection, instead of the URL's path. */
  readonly paths?: readonly string[]
  readonly method?: 'GET' | 'POST'
  readonly headers?: Record<string, string>
  readonly body?: string
  readonly connections: number
  readonly seconds: number
}

/**
 * Measures the requests answered per second, with autocannon: it takes less CPU time of the services than `startLoad`
 * would.
 * @throws Error if a request fails or is not answered 2xx: errors are fast and would distort the figure.
 */
export async function requestsPerSecond({ paths, seconds, ...load }: RequestLoad): Promise<number> {
  const requests = paths?.map((path) => ({ path }))
  const result = await autocannon({ ...load, duration: seconds, ...(requests ? { requests } : {}) })
  if (result.errors > 0 || result.non2xx > 0) {
    throw new Error(`${load.url}: ${result.errors} errors, ${result.non2xx} responses other than 2xx`)
  }
  return result.requests.total / result.duration
}

const CONNECTIONS = 16

/** Measures how many inserts of one row PostgreSQL commits per second: 16 connections, named statements. */
export async function singleRowCommitsPerSecond(databaseUrl: string, seconds: number): Promise<number> {
  const pool = new Pool({ connectionString: databaseUrl, max: CONNECTIONS })
  await pool.query('CREATE TABLE IF NOT EXISTS bench_rows (id uuid PRIMARY KEY, text text NOT NULL)')
  const insert = { name: 'bench', text: `INSERT INTO bench_rows VALUES (gen_random_uuid(), 'row')` }
  const commits = await runLoad({ callers: CONNECTIONS, seconds, call: async () => await pool.query(insert) })
  await pool.query('DROP TABLE bench_rows')
  await pool.end()
  return commits.length / seconds
}

/** The minimum of I/O between a start and its payload: the baseline of the latency. */
export async function openMinimalPath(urls: { database: string; amqp: string; http: string }) {
  const client = new Client({ connectionString: urls.database })
  await client.connect()
  await client.query('CREATE TABLE IF NOT EXISTS bench_commits (id uuid PRIMARY KEY)')
  const connection = await connect(urls.amqp, { noDelay: true })
  const channel = await connection.createConfirmChannel()
  // The same queue type as the service's. It writes a message to disk before it delivers it.
  const queue = `bench-${randomUUID()}`
  await channel.assertQueue(queue, { durable: true, arguments: { 'x-queue-type': 'quorum' } })
  let delivered = Promise.withResolvers<void>()
  await channel.consume(queue, () => delivered.resolve(), { noAck: true })
  const commit = () => client.query({ name: 'commit', text: 'INSERT INTO bench_commits VALUES (gen_random_uuid())' })
  return {
    /**
     * Does one HTTP round trip, two commits and one hop over a quorum queue, one after another. Resolves to the ms
     * taken.
     */
    async measureMs(): Promise<number> {
      const startedAt = performance.now()
      await send(urls.http, { method: 'POST', body: '{}', status: 204 })
      await commit()
      await commit()
      delivered = Promise.withResolvers()
      channel.sendToQueue(queue, Buffer.from('{}'), { persistent: true })
      await delivered.promise
      return performance.now() - startedAt
    },
    async close(): Promise<void> {
      await channel.deleteQueue(queue)
      await connection.close()
      await client.end()
    },
  }
}
