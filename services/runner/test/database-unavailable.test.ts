import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createDatabase, type Database, migrate, showRun, showSession } from '@workflow-service/database'
import { createInProcessQueue } from '@workflow-service/messaging'
import { createLogger } from '@workflow-service/service-kit'
import { type PrivatePostgres, startPostgres, waitUntil } from '@workflow-service/testkit'
import type { Agent } from '../src/agent/agent.ts'
import { readRunnerConfig, startRunner } from '../src/index.ts'
import { insertStarts } from './support/insert-starts.ts'
import { FAST_TIMING } from './support/runner-fixture.ts'

let postgres: PrivatePostgres
let db: Database
beforeAll(async () => {
  postgres = await startPostgres()
  await migrate({ databaseUrl: postgres.url })
  db = createDatabase({ url: postgres.url, applicationName: 'test' })
}, 60_000)
afterAll(async () => {
  await db.close()
  await postgres.stop()
})

const note = (text: string) => ({ kind: 'note' as const, data: { code: 'test', text } })

describe('a run during an outage of the database', () => {
  test('waits and continues in the same attempt, although its lease has expired meanwhile', async () => {
    const [id = ''] = (await insertStarts(db, 1)).ids
    const { promise: outageBegan, resolve: reportOutage } = Promise.withResolvers<void>()
    let isBegun = false
    const agent: Agent = async (run) => {
      await run.append([note('one')])
      isBegun = true
      await outageBegan
      await run.append([note('two')])
      await run.listSources()
    }
    // This run sends nothing; the runner only needs the address of a dispatcher.
    const dispatcher = createServer().listen(0, '127.0.0.1')
    await once(dispatcher, 'listening')
    const config = readRunnerConfig({
      DATABASE_URL: postgres.url,
      AMQP_URL: 'amqp://127.0.0.1:1',
      DISPATCHER_URL: `http://127.0.0.1:${(dispatcher.address() as AddressInfo).port}`,
      INTERNAL_API_TOKEN: 't'.repeat(32),
      HOST: '127.0.0.1',
      PORT: '0',
    })
    const logger = createLogger({ service: 'runner', level: 'silent' })
    const runner = await startRunner(config, {
      agent,
      logger,
      sessionQueue: createInProcessQueue(),
      timing: FAST_TIMING,
    })
    try {
      await waitUntil(() => isBegun)
      await postgres.kill()
      reportOutage()
      // Wait until the lease has expired.
      await new Promise((done) => setTimeout(done, FAST_TIMING.leaseMs * 1.5))
      await postgres.restart()
      await waitUntil(async () => (await showRun(db, id))?.status === 'succeeded', { timeoutMs: 30_000 })
      const run = await showRun(db, id)
      expect(run).toMatchObject({ attempts: 1, steps: [{ data: { text: 'one' } }, { data: { text: 'two' } }] })
      expect(await showSession(db, id)).toMatchObject({ lease: null, finished: 1 })
    } finally {
      await runner.stop()
      dispatcher.close()
    }
  }, 90_000)
})
