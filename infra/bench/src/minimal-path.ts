import { randomUUID } from 'node:crypto'
import { connect } from 'amqplib'
import { Client } from 'pg'

/** The minimum of I/O between a start and its payload: the baseline of the latency. */
export interface MinimalPath {
  /** Does one HTTP round trip, two commits and one hop over a quorum queue, one after another. Resolves to the ms taken. */
  measureMs(): Promise<number>
  close(): Promise<void>
}

/** Opens the connections. */
export async function openMinimalPath(urls: { database: string; amqp: string; http: string }): Promise<MinimalPath> {
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
    async measureMs() {
      const startedAt = performance.now()
      await (await fetch(urls.http, { method: 'POST', body: '{}' })).arrayBuffer()
      await commit()
      await commit()
      delivered = Promise.withResolvers()
      channel.sendToQueue(queue, Buffer.from('{}'), { persistent: true })
      await delivered.promise
      return performance.now() - startedAt
    },
    async close() {
      await channel.deleteQueue(queue)
      await connection.close()
      await client.end()
    },
  }
}
