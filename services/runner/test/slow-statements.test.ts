import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { createDatabase, type Database, newId } from '@workflow-service/database'
import { waitUntil } from '@workflow-service/testkit'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import {
  MAX_STATEMENT_TIMEOUTS,
  retryWhileUnavailable,
  SlowStatementError,
} from '../src/runs/retry-while-unavailable.ts'
import { createRunStore } from '../src/runs/run-store.ts'
import { createActiveSessions, type LeasedSession } from '../src/sessions/active-sessions.ts'
import { createSessionStore } from '../src/sessions/session-store.ts'
import { insertStarts } from './support/insert-starts.ts'

/** Of the statements of the stores; those that prepare a test may take longer. */
const STATEMENT_TIMEOUT_MS = 600
let db: Database
afterAll(() => db.close())
const database = useTestDatabase()
beforeAll(() => {
  db = createDatabase({ url: database.url, applicationName: 'slow', statementTimeoutMs: STATEMENT_TIMEOUT_MS })
})

const note = { kind: 'note' as const, data: { code: 'test', text: 'a step' } }

let sessions: LeasedSession[]
let organizationId: string

beforeEach(async () => {
  const inserted = await insertStarts(database.db, 3)
  organizationId = inserted.organizationId
  const activeSessions = createActiveSessions(10)
  const acquired = await openSessionStore({ activeSessions, db: database.db }).acquire(inserted.ids)
  sessions = acquired.sessions.map((session) => activeSessions.add(session))
})

function openSessionStore(options: Partial<Parameters<typeof createSessionStore>[0]> = {}) {
  const activeSessions = createActiveSessions(10)
  return createSessionStore({ db, owner: 'test', leaseMs: 60_000, perOrganization: 10, activeSessions, ...options })
}

const runOf = (id: string, organization = organizationId) => {
  const workflow = { id: newId(), name: 'Orders', description: '', rulesFileId: null }
  return { id, organizationId: organization, number: 1, workflow }
}

/** Runs the work while another connection has locked the session. */
async function whileLocked(session: LeasedSession, work: () => Promise<void>): Promise<void> {
  const other = createDatabase({ url: database.url, applicationName: 'lock', statementTimeoutMs: 60_000 })
  const client = await other.pool.connect()
  try {
    await client.query('BEGIN')
    await client.query('SELECT FROM sessions WHERE id = $1 FOR UPDATE', [session.sessionId])
    await work()
  } finally {
    await client.query('ROLLBACK')
    client.release()
    await other.close()
  }
}

describe('a statement that is slow while the database answers others', () => {
  test('fails the attempt of its run, and not of the other runs in the same batch', async () => {
    const store = createRunStore(db, 'test')
    const open = (session: LeasedSession) => store.open(session, runOf(session.sessionId))
    const append = (session: LeasedSession) => open(session).appendSteps(0, [note])
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
      db.pool.query(statement.values.flat().includes(slowId) ? 'SELECT pg_sleep(10)' : statement)
    const store = createRunStore({ ping: () => db.ping(), pool: { query } } as unknown as Database, 'test')
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
      return db.pool.query(statement)
    }
    const store = openSessionStore({ db: { ping: () => db.ping(), pool: { query } as unknown as Database['pool'] } })
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
      if (++calls <= MAX_STATEMENT_TIMEOUTS) await db.pool.query('SELECT pg_sleep(10)')
      return 'done'
    }
    const unavailable: Pick<Database, 'ping'> = { ping: () => Promise.reject(new Error('connect ECONNREFUSED')) }
    expect(await retryWhileUnavailable({ db: unavailable, signal: new AbortController().signal }, operation)).toBe(
      'done',
    )
  })
})
