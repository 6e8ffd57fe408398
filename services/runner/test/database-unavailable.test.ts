import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createDatabase, type Database, migrate, showRun, showSession } from '@workflow-service/database'
import { createInProcessQueue } from '@workflow-service/messaging'
import { createLogger, type Logger } from '@workflow-service/service-kit'
import { createCapturedLogger, type PrivatePostgres, startPostgres, waitUntil } from '@workflow-service/testkit'
import type { Agent } from '../src/agent/agent.ts'
import { readRunnerConfig, type RunnerTiming, startRunner } from '../src/index.ts'
import { insertStarts } from './support/insert-starts.ts'
import { FAST_TIMING, NEVER_MS } from './support/runner-fixture.ts'

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

/** Starts a runner whose runs send nothing: it only needs the address of a dispatcher. */
async function startTestRunner(agent: Agent, options: { timing?: Partial<RunnerTiming>; logger?: Logger } = {}) {
  const { timing = {}, logger = createLogger({ service: 'runner', level: 'silent' }) } = options
  const config = readRunnerConfig({
    DATABASE_URL: postgres.url,
    AMQP_URL: 'amqp://127.0.0.1:1',
    DISPATCHER_URL: 'http://127.0.0.1:1',
    INTERNAL_API_TOKEN: 't'.repeat(32),
    HOST: '127.0.0.1',
    PORT: '0',
  })
  const sessionQueue = createInProcessQueue()
  return await startRunner(config, { agent, logger, sessionQueue, timing: { ...FAST_TIMING, ...timing } })
}

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
    const runner = await startTestRunner(agent)
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
    }
  }, 90_000)

  test('is not taken over by another runner when PostgreSQL restarts', async () => {
    const timing = { leaseMs: NEVER_MS, renewMs: 1_000, checkRunnersMs: 500 }
    const [id = ''] = (await insertStarts(db, 1)).ids
    const { promise: outageEnded, resolve: reportEnd } = Promise.withResolvers<void>()
    let begun = 0
    const agent: Agent = async (run) => {
      begun += 1
      await outageEnded
      await run.append([note('one')])
    }
    const { logger, lines } = createCapturedLogger({ service: 'runner' })
    const runner = await startTestRunner(agent, { timing })
    const other = await startTestRunner(agent, { timing, logger })
    try {
      await waitUntil(() => begun === 1)
      await waitUntil(async () => (await db.pool.query('SELECT FROM runners')).rowCount === 2)
      await postgres.kill()
      await postgres.restart()
      // Longer than a runner that has ended keeps its sessions.
      await new Promise((done) => setTimeout(done, 5 * timing.checkRunnersMs))
      reportEnd()
      await waitUntil(async () => (await showRun(db, id))?.status === 'succeeded', { timeoutMs: 30_000 })
      expect(await showRun(db, id)).toMatchObject({ attempts: 1 })
      expect(lines.filter(({ msg }) => msg === 'runner.ended')).toEqual([])
    } finally {
      await Promise.all([runner.stop(), other.stop()])
    }
  }, 90_000)
})
