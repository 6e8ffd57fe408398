import { randomUUID } from 'node:crypto'
import { connect } from 'amqplib'
import { Client, Pool } from 'pg'

/** Single-row inserts that Postgres commits per second, from 16 connections, named statements. */
export async function commitsPerSecond(databaseUrl: string, seconds: number): Promise<number> {
  const pool = new Pool({ connectionString: databaseUrl, max: 16 })
  await pool.query('CREATE TABLE IF NOT EXISTS bench_rows (id uuid PRIMARY KEY, text text NOT NULL)')
  const end = performance.now() + seconds * 1_000
  let commits = 0
  const insertUntilEnd = async (): Promise<void> => {
    while (performance.now() < end) {
      await pool.query({ name: 'bench', text: `INSERT INTO bench_rows VALUES (gen_random_uuid(), 'row')` })
      commits += 1
    }
  }
  await Promise.all(Array.from({ length: 16 }, insertUntilEnd))
  await pool.query('DROP TABLE bench_rows')
  await pool.end()
  return commits / seconds
}

/** Measures, in ms, what no design can avoid between a start and its request. */
export interface Floor {
  measure(): Promise<number>
  close(): Promise<void>
}

/** One HTTP round trip, two commits and one hop over a quorum queue, one after another. */
export async function createFloor(databaseUrl: string, amqpUrl: string, httpUrl: string): Promise<Floor> {
  const client = new Client({ connectionString: databaseUrl })
  await client.connect()
  await client.query('CREATE TABLE IF NOT EXISTS bench_floor (id uuid PRIMARY KEY)')
  const broker = await connect(amqpUrl, { noDelay: true })
  const channel = await broker.createConfirmChannel()
  // The same kind of queue as the service's: its messages are on disk before they are handed on.
  const queue = `bench-${randomUUID()}`
  await channel.assertQueue(queue, { durable: true, arguments: { 'x-queue-type': 'quorum' } })
  let hop = Promise.withResolvers<void>()
  await channel.consume(queue, () => hop.resolve(), { noAck: true })
  const commit = () => client.query({ name: 'floor', text: 'INSERT INTO bench_floor VALUES (gen_random_uuid())' })
  return {
    async measure() {
      const begun = performance.now()
      await (await fetch(httpUrl, { method: 'POST', body: '{}' })).arrayBuffer()
      await commit()
      await commit()
      hop = Promise.withResolvers<void>()
      channel.sendToQueue(queue, Buffer.from('{}'), { persistent: true })
      await hop.promise
      return performance.now() - begun
    },
    async close() {
      await channel.deleteQueue(queue)
      await broker.close()
      await client.end()
    },
  }
}
