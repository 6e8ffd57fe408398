import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createDatabase, type Database, migrate, newId, showRun, showSession } from '@workflow-service/database'
import { createInProcessQueue } from '@workflow-service/messaging'
import { createLogger } from '@workflow-service/service-kit'
import { type PrivatePostgres, startPostgres, waitUntil } from '@workflow-service/testkit'
import type { Agent } from '../src/agent/agent.ts'
import { readRunnerConfig, startRunner } from '../src/index.ts'
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

/** Records a start in a new organization of this database. */
async function recordStart(): Promise<{ startId: string; sessionId: string }> {
  const [organizationId, workflowId, startId, sessionId] = [newId(), newId(), newId(), newId()]
  await db.prisma.organization.create({ data: { id: organizationId, name: 'Acme' } })
  await db.prisma.workflow.create({
    data: {
      id: workflowId,
      organizationId,
      name: 'w',
      description: '',
      searchText: 'w',
      scope: 'company_wide',
      isActive: true,
    },
  })
  await db.prisma.session.create({
    data: { id: sessionId, organizationId, lastStartNumber: 1, waitingSince: new Date() },
  })
  await db.prisma.start.create({
    data: {
      id: startId,
      organizationId,
      workflowId,
      sessionId,
      number: 1,
      origin: 'api',
      context: 'hello',
      requestId: 'request-1',
    },
  })
  return { startId, sessionId }
}

const note = (text: string) => ({ kind: 'note' as const, data: { code: 'test', text } })

describe('a run during an outage of the database', () => {
  test('waits and continues in the same attempt, although its lease has expired meanwhile', async () => {
    const { startId, sessionId } = await recordStart()
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
      await waitUntil(async () => (await showRun(db, startId))?.status === 'succeeded', { timeoutMs: 30_000 })
      const run = await showRun(db, startId)
      expect(run).toMatchObject({ attempts: 1, steps: [{ data: { text: 'one' } }, { data: { text: 'two' } }] })
      expect(await showSession(db, sessionId)).toMatchObject({ lease: null, finished: 1 })
    } finally {
      await runner.stop()
      dispatcher.close()
    }
  }, 90_000)
})
