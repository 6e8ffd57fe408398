import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { Client } from 'pg'
import { type PrivatePostgres, startPostgres } from '../src/index.ts'

let postgres: PrivatePostgres

beforeAll(async () => {
  postgres = await startPostgres()
}, 120_000)

afterAll(async () => {
  await postgres.stop()
})

afterEach(async () => {
  await postgres.restart()
})

async function connected(connectionTimeoutMillis = 10_000): Promise<Client> {
  const client = new Client({ connectionString: postgres.url, connectionTimeoutMillis })
  client.on('error', () => {})
  await client.connect()
  return client
}

describe('startPostgres', () => {
  test('keeps committed data and its URL when all of its processes are killed', async () => {
    const before = await connected()
    await before.query('CREATE TABLE kept AS SELECT 1 AS id')
    const running = before
      .query('SELECT sum(i) FROM generate_series(1, 1000000000) AS i')
      .catch((error: unknown) => error)
    await postgres.kill()
    // The client sees either the end or the reset of the connection first.
    expect(await running).toMatchObject({ message: expect.stringMatching(/terminated|ECONNRESET/) })
    await expect(connected()).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await postgres.restart()
    const after = await connected()
    expect((await after.query('SELECT id FROM kept')).rows).toEqual([{ id: 1 }])
    await after.end()
  })

  test('accepts no new connection while it is paused', async () => {
    postgres.pause()
    await expect(connected(500)).rejects.toThrow('timeout')
    postgres.resume()
    const client = await connected()
    await client.end()
  })
})
