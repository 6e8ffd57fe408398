import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import {
  createDatabase,
  type Database,
  inTransaction,
  migrate,
  newId,
  showRun,
  showSession,
} from '@workflow-service/database'
import { createInProcessQueue } from '@workflow-service/messaging'
import { createLogger, type Logger } from '@workflow-service/service-kit'
import { createCapturedLogger, type PrivatePostgres, startPostgres, waitUntil } from '@workflow-service/testkit'
import type { Agent } from '../src/agent/agent.ts'
import { readRunnerConfig, type RunnerTiming, startRunner } from '../src/index.ts'
import {
  MAX_STATEMENT_TIMEOUTS,
  retryWhileUnavailable,
  SlowStatementError,
} from '../src/runs/retry-while-unavailable.ts'
import { createRunStore } from '../src/runs/run-store.ts'
import { createActiveSessions, type LeasedSession } from '../src/sessions/active-sessions.ts'
import { createSessionStore } from '../src/sessions/session-store.ts'
import { FAST_TIMING, NEVER_MS } from './support/runner-fixture.ts'

let postgres: PrivatePostgres
let db: Database
beforeAll(async () => {
  postgres = await startPostgres()
  await migrate({ databaseUrl: postgres.url })
  db = createDatabase({ url: postgres.url, applicationName: 'test' })
})
afterAll(async () => {
  await db.close()
  await postgres.stop()
})

const note = (text: string) => ({ kind: 'note' as const, data: { code: 'test', text } })

/** Inserts an organization with starts that wait, each in a session of its own with the same id. */
async function insertStarts(count: number) {
  const { prisma } = db
  const [organizationId, workflowId] = [newId(), newId()]
  const ids = Array.from({ length: count }, () => newId())
  await prisma.organization.create({ data: { id: organizationId, name: 'Acme' } })
  const workflow = { name: 'w', description: '', scope: 'company_wide', searchText: 'w', isActive: true }
  await prisma.workflow.create({ data: { id: workflowId, organizationId, ...workflow } })
  const session = { organizationId, lastStartNumber: 1, waitingSince: new Date() }
  await prisma.session.createMany({ data: ids.map((id) => ({ id, ...session })) })
  const start = { organizationId, workflowId, number: 1, origin: 'api', context: 'go', requestId: 'r' }
  await prisma.start.createMany({ data: ids.map((id) => ({ id, sessionId: id, ...start })) })
  return { organizationId, ids }
}

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
    const [id = ''] = (await insertStarts(1)).ids
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
  })

  test('is not taken over by another runner when PostgreSQL restarts', async () => {
    const timing = { leaseMs: NEVER_MS, renewMs: 1_000, checkRunnersMs: 500 }
    const [id = ''] = (await insertStarts(1)).ids
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
  })
})

/** Runs the work while another connection has locked the session. */
const whileLocked = (session: LeasedSession, work: () => Promise<void>): Promise<void> =>
  inTransaction(db, async (client) => {
    await client.query('SELECT FROM sessions WHERE id = $1 FOR UPDATE', [session.sessionId])
    await work()
  })

describe('a statement that is slow while the database answers others', () => {
  /** Of the stores; what prepares a test may take longer. */
  let impatient: Database
  beforeAll(() => {
    impatient = createDatabase({ url: postgres.url, applicationName: 'slow', statementTimeoutMs: 600 })
  })
  afterAll(() => impatient.close())

  let sessions: LeasedSession[]
  let organizationId: string
  beforeEach(async () => {
    const inserted = await insertStarts(3)
    organizationId = inserted.organizationId
    const activeSessions = createActiveSessions(10)
    const acquired = await openSessionStore({ activeSessions, db }).acquire(inserted.ids)
    sessions = acquired.sessions.map((session) => activeSessions.add(session))
  })

  function openSessionStore(options: Partial<Parameters<typeof createSessionStore>[0]> = {}) {
    const activeSessions = createActiveSessions(10)
    return createSessionStore({
      db: impatient,
      owner: 'test',
      leaseMs: 60_000,
      perOrganization: 10,
      activeSessions,
      ...options,
    })
  }

  const runOf = (id: string, organization = organizationId) => {
    const workflow = { id: newId(), name: 'Orders', description: '', rulesFileId: null }
    return { id, organizationId: organization, number: 1, workflow }
  }

  test('fails the attempt of its run, and not of the other runs in the same batch', async () => {
    const store = createRunStore(impatient, 'test')
    const open = (session: LeasedSession) => store.open(session, runOf(session.sessionId))
    const append = (session: LeasedSession) => open(session).appendSteps(0, [note('a step')])
    const [slow, ...others] = sessions
    await whileLocked(slow!, async () => {
      const results = await Promise.allSettled([slow!, ...others].map(append))
      expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled'])
      expect(results[0]).toMatchObject({ reason: expect.any(SlowStatementError) })
    })
    expect(await open(others[0]!).readSteps()).toHaveLength(1)
    await append(slow!)
  })

  test('of one organization fails no read of the sources of another', async () => {
    const slowId = newId()
    const query = (statement: { text: string; values: string[][] }) =>
      impatient.pool.query(statement.values.flat().includes(slowId) ? 'SELECT pg_sleep(10)' : statement)
    const store = createRunStore({ ping: () => impatient.ping(), pool: { query } } as unknown as Database, 'test')
    const [session] = sessions
    const ids = [organizationId, slowId, newId()]
    const reads = await Promise.allSettled(ids.map((id) => store.open(session!, runOf(newId(), id)).listSmallSources()))
    expect(reads.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })

  test('delays the release of its own session, and of no other', async () => {
    const store = openSessionStore()
    const [slow, ...others] = sessions
    await whileLocked(slow!, async () => {
      const results = await Promise.allSettled([slow!, ...others].map((session) => store.release(session)))
      expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled'])
    })
  })

  test('does not fail the end of a run when the lock is gone before the last try', async () => {
    let tries = 0
    const query = (statement: string) => {
      tries += 1
      return impatient.pool.query(statement)
    }
    const store = openSessionStore({
      db: { ping: () => impatient.ping(), pool: { query } as unknown as Database['pool'] },
    })
    const [slow] = sessions
    let finished: Promise<unknown> | undefined
    await whileLocked(slow!, async () => {
      finished = store.finishRun(slow!, { number: 1, status: 'succeeded', error: null, shouldClaimNext: true })
      await waitUntil(() => tries === 2)
    })
    expect(await finished).toEqual({ kind: 'released' })
  })

  test('is tried without limit while the database answers nothing else', async () => {
    let calls = 0
    const operation = async (): Promise<string> => {
      if (++calls <= MAX_STATEMENT_TIMEOUTS) await impatient.pool.query('SELECT pg_sleep(10)')
      return 'done'
    }
    const unavailable: Pick<Database, 'ping'> = { ping: () => Promise.reject(new Error('connect ECONNREFUSED')) }
    expect(await retryWhileUnavailable({ db: unavailable, signal: new AbortController().signal }, operation)).toBe(
      'done',
    )
  })
})
