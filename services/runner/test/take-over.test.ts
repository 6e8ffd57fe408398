import { setTimeout } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from '@jest/globals'
import { inTransaction, showSession } from '@workflow-service/database'
import { type StartedProcess, waitUntil } from '@workflow-service/testkit'
import { createLogger } from '@workflow-service/service-kit'
import type { RunnerTiming } from '../src/index.ts'
import { watchRunners } from '../src/sessions/runner-watch.ts'
import * as support from './support/runner-fixture.ts'

const fixture = support.useRunnerFixture()
let acme: support.TestOrganization
let endpoint: support.TestOrganization['endpoint']
beforeEach(async () => {
  acme = await fixture.createOrganization({ description: 'Post to Order intake, then to Audit log.' })
  endpoint = acme.endpoint
  // Those that earlier tests have killed.
  await fixture.db.pool.query('DELETE FROM runners')
})

/** Delays the answer to the next request until the returned function is called. Later requests are answered at once. */
function delayNextAnswer(): () => void {
  const { promise, resolve } = Promise.withResolvers<void>()
  const next = endpoint.requests.length
  endpoint.answerWith(async (_request, index) => {
    if (index === next) await promise
    return { status: 204 }
  })
  return resolve
}

/**
 * Starts "one" and "two" in one session, and waits until the first payload of "one" is under way and others know its
 * runner.
 */
async function startTwo(): Promise<[support.AcceptedStart, support.AcceptedStart]> {
  const one = await fixture.start(acme, { context: 'one' })
  const two = await fixture.start(acme, { context: 'two', sessionId: one.sessionId })
  await endpoint.waitForRequests(1)
  await waitUntil(async () => (await countRunners()) === 1)
  return [one, two]
}

/** A runner that a test asks what it did. */
type Observed = Pick<StartedProcess, 'pid' | 'jsonLines'>

const waitForLease = ({ sessionId }: support.AcceptedStart, { pid }: Observed) =>
  waitUntil(async () => (await showSession(fixture.db, sessionId))?.lease?.owner.includes(`/${pid}/`))

const countRunners = async () => (await fixture.db.pool.query('SELECT FROM runners')).rowCount

/** Of clients: PostgreSQL's own autovacuum may work in the database. */
const END_OTHER_CONNECTIONS = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`

const payloads = () => endpoint.requests.map(({ path, json }) => `${path} ${(json as { message: string }).message}`)

const logLines = (runner: Observed, message: string) => runner.jsonLines.filter((line) => line['msg'] === message)

// With a lease that does not expire during the test, another runner can only continue if the session is released, or
// its runner is known to have ended.
const longLease = { leaseMs: support.NEVER_MS, renewMs: 1_000 }

/** Starts a runner without a broker in this process: one that is neither killed nor paused needs none of its own. */
async function startOther(timing: Partial<RunnerTiming> = {}) {
  const from = fixture.logLines.length
  const runner = await fixture.startRunner({ sessionQueue: undefined, timing: { ...support.FAST_TIMING, ...timing } })
  return {
    pid: process.pid,
    get jsonLines() {
      return fixture.logLines.slice(from)
    },
    stop: async () => await runner.stop(),
  }
}

test('a runner that is killed (SIGKILL) while a payload is under way: another one resumes the run, and sends nothing twice', async () => {
  const answer = delayNextAnswer()
  const killed = await fixture.startRunnerProcess(longLease)
  const starts = await startTwo()
  const other = await startOther({ ...longLease, sweepMs: support.NEVER_MS })
  await inTransaction(fixture.db, async (client) => {
    // As a start of the session does that is being recorded: the first sweep skips the session.
    await client.query('SELECT FROM sessions WHERE id = $1 FOR UPDATE', [starts[0].sessionId])
    killed.kill('SIGKILL')
    await waitUntil(() => logLines(other, 'runner.ended').length === 1)
    await setTimeout(support.FAST_TIMING.checkRunnersMs / 2)
  })
  await waitForLease(starts[0], other)
  answer()
  const [run] = await fixture.waitForRuns(starts)
  expect(run).toMatchObject({ status: 'succeeded', attempts: 2 })
  expect(payloads()).toEqual(['/orders one', '/audit one', '/orders two', '/audit two'])
  expect(run!.steps.filter(({ kind }) => kind === 'tool_call')).toHaveLength(2)
  expect(logLines(other, 'runner.ended')).toHaveLength(1)
  await other.stop()
  // The other one has removed itself; the killed one is forgotten when its leases have surely expired.
  expect(await countRunners()).toBe(1)
})

test('a runner that is paused (SIGSTOP) or loses its connections keeps its sessions for as long as its leases last', async () => {
  const answer = delayNextAnswer()
  const disturbed = await fixture.startRunnerProcess(longLease)
  const starts = await startTwo()
  const checkRunnersMs = 500
  const other = await startOther({ ...longLease, checkRunnersMs })
  // Time for the runner to get its lock back: three checks.
  const waitForChecks = () => setTimeout(5 * checkRunnersMs)
  disturbed.kill('SIGSTOP')
  await waitForChecks()
  disturbed.kill('SIGCONT')
  await fixture.db.pool.query(END_OTHER_CONNECTIONS)
  await waitForChecks()
  answer()
  expect(await fixture.waitForRuns(starts)).toMatchObject([{ attempts: 1 }, { attempts: 1 }])
  expect(logLines(other, 'runner.ended')).toEqual([])
  await Promise.all([disturbed.stop(), other.stop()])
})

test('a runner that is paused (SIGSTOP) until another one has its lease writes and sends nothing when it continues', async () => {
  const answer = delayNextAnswer()
  const paused = await fixture.startRunnerProcess()
  const starts = await startTwo()
  paused.kill('SIGSTOP')
  const other = await startOther()
  await waitForLease(starts[0], other)
  answer()
  const before = await fixture.waitForRuns(starts)
  // The endpoint has answered meanwhile, so the paused runner continues right before its next write and payload.
  paused.kill('SIGCONT')
  await waitUntil(() => logLines(paused, 'lease.lost').length === 1)
  await paused.stop()
  expect(await fixture.waitForRuns(starts)).toEqual(before)
  expect(payloads()).toEqual(['/orders one', '/audit one', '/orders two', '/audit two'])
  expect(logLines(paused, 'run.ended')).toMatchObject([{ outcome: 'lease_lost', run_id: starts[0].startId }])
  await other.stop()
})

describe('a runner that stops (SIGTERM)', () => {
  test('ends at the next step boundary, releases the session, acquires no other one, and exits', async () => {
    const answer = delayNextAnswer()
    const stopping = await fixture.startRunnerProcess(longLease)
    const [one, two] = await startTwo()
    const other = await startOther(longLease)
    stopping.kill('SIGTERM')
    await waitUntil(() => logLines(stopping, 'service.stopping').length === 1)
    const three = await fixture.start(acme, { context: 'three' })
    await waitUntil(() => payloads().includes('/audit three'))
    answer()
    expect(await stopping.exited).toEqual({ code: 0, signal: null })
    expect(logLines(stopping, 'run.ended')).toMatchObject([{ outcome: 'interrupted', run_id: one.startId }])
    const [run] = await fixture.waitForRuns([one, two, three])
    // An interruption does not count as an attempt.
    expect(run).toMatchObject({ status: 'succeeded', attempts: 1 })
    expect(payloads().toSorted()).toEqual(
      ['/orders one', '/audit one', '/orders two', '/audit two', '/orders three', '/audit three'].toSorted(),
    )
    await other.stop()
  })

  test('abandons a step after the grace period, and the next runner gets the result of its delivery', async () => {
    const answer = delayNextAnswer()
    const stopping = await fixture.startRunnerProcess({ ...longLease, graceMs: 300 })
    const start = await fixture.start(acme, { context: 'one' })
    await endpoint.waitForRequests(1)
    stopping.kill('SIGTERM')
    expect(await stopping.exited).toEqual({ code: 0, signal: null })
    expect((await showSession(fixture.db, start.sessionId))?.lease).toBeNull()
    const other = await startOther(longLease)
    await waitForLease(start, other)
    answer()
    expect(await fixture.waitForRuns([start])).toMatchObject([{ status: 'succeeded', attempts: 1 }])
    expect(payloads()).toEqual(['/orders one', '/audit one'])
    await other.stop()
  })

  test('abandons a step after the grace period, also while the broker does not answer', async () => {
    const answer = delayNextAnswer()
    const closed = Promise.withResolvers<void>()
    const sessionQueue = { ...fixture.queue, consume: async () => ({ close: () => closed.promise }) }
    const timing = { ...support.FAST_TIMING, ...longLease, graceMs: 300 }
    const runner = await fixture.startRunner({ sessionQueue, timing })
    const start = await fixture.start(acme)
    await endpoint.waitForRequests(1)
    const stopped = runner.stop()
    try {
      expect(await fixture.waitForStatus(start, 'queued')).toMatchObject({ attempts: 0 })
    } finally {
      closed.resolve()
      answer()
      await stopped
    }
  })

  test('exits although the broker and the database are unavailable', async () => {
    const runner = await fixture.startRunnerProcess({}, { DATABASE_URL: 'postgres://user@127.0.0.1:1/database' })
    await waitUntil(() => logLines(runner, 'database.unavailable').length === 1)
    runner.kill('SIGTERM')
    expect(await runner.exited).toEqual({ code: 0, signal: null })
  })
})

test('a runner that stops while it is recorded is removed after that', async () => {
  const { db } = fixture
  const events: string[] = []
  const recording = Promise.withResolvers<void>()
  const recorded = Promise.withResolvers<void>()
  const query = async (statement: string, values: unknown[]): Promise<unknown> => {
    const isInsert = statement.startsWith('INSERT INTO runners')
    if (isInsert) {
      recording.resolve()
      await recorded.promise
    }
    const result = await db.pool.query(statement, values)
    events.push(isInsert ? 'recorded' : 'removed')
    return result
  }
  const watched = { createClient: () => db.createClient(), pool: { query } as unknown as typeof db.pool }
  const timing = { leaseMs: support.NEVER_MS, checkRunnersMs: support.NEVER_MS }
  const logger = createLogger({ service: 'test', level: 'silent' })
  const watch = watchRunners({ db: watched, owner: 'brief', timing, logger }, () => {})
  await recording.promise
  const stopping = watch.stop(true)
  // Time for a removal that comes too early.
  await setTimeout(100)
  recorded.resolve()
  await stopping
  expect(events).toEqual(['recorded', 'removed'])
  expect(await countRunners()).toBe(0)
})
