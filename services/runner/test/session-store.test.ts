import { beforeEach, describe, expect, test } from '@jest/globals'
import { type Database, showSession } from '@workflow-service/database'
import { type ActiveSessions, createActiveSessions, type LeasedSession } from '../src/sessions/active-sessions.ts'
import { createSessionStore, type SessionStore } from '../src/sessions/session-store.ts'
import { type AcceptedStart, type TestOrganization, useRunnerFixture } from './support/runner-fixture.ts'

const fixture = useRunnerFixture()
let acme: TestOrganization
let start: AcceptedStart
let activeSessions: ActiveSessions
let store: SessionStore
let session: LeasedSession
let lostAnswers: number

beforeEach(async () => {
  acme = await fixture.createOrganization()
  start = await fixture.start(acme, { isPublished: false })
  lostAnswers = 0
  activeSessions = createActiveSessions(10)
  store = createSessionStore({
    db: { pool: { query: queryUnreliably } as unknown as Database['pool'], ping: () => fixture.db.ping() },
    owner: 'test',
    leaseMs: 60_000,
    perOrganization: 10,
    activeSessions,
  })
  const { sessions } = await store.acquire([start.sessionId])
  session = activeSessions.add(sessions[0]!)
})

/** Runs a statement, which takes effect although its answer may get lost. */
async function queryUnreliably(statement: string) {
  const result = await fixture.db.pool.query(statement)
  if (lostAnswers-- > 0) throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
  return result
}

const finish = () => store.finishRun(session, { number: 1, status: 'succeeded', error: null, shouldClaimNext: true })

describe('a run whose end was recorded although the answer was lost', () => {
  beforeEach(() => {
    lostAnswers = 1
  })

  test('counts as ended, and its session as released', async () => {
    expect(await finish()).toEqual({ kind: 'released' })
    expect(await showSession(fixture.db, start.sessionId)).toMatchObject({ finished: 1, lease: null })
  })

  test('is followed by the next run of the session', async () => {
    const next = await fixture.start(acme, { sessionId: start.sessionId, isPublished: false })
    expect(await finish()).toMatchObject({ kind: 'run', run: { id: next.startId, number: 2 } })
  })
})

test('the end of a run is not recorded after another runner acquired the session', async () => {
  await fixture.db.prisma.session.update({
    where: { id: start.sessionId },
    data: { leaseEpoch: { increment: 1 } },
  })
  expect(await finish()).toEqual({ kind: 'lease_lost' })
  expect(await fixture.run(start.startId)).toMatchObject({ status: 'running' })
})
