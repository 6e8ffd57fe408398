import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { showSession } from '@workflow-service/database'
import { type StartedProcess, waitUntil } from '@workflow-service/testkit'
import { startRunnerFixture, type TestOrganization, type RunnerFixture } from './support/runner-fixture.ts'

let fixture: RunnerFixture
let acme: TestOrganization
let endpoint: TestOrganization['endpoint']
beforeAll(async () => {
  fixture = await startRunnerFixture()
})
afterAll(() => fixture.stop())
beforeEach(async () => {
  acme = await fixture.createOrganization({ description: 'Post to Order intake, then to Audit log.' })
  endpoint = acme.endpoint
})

/** Lets the next request wait until it is told to go on; those after it are answered at once. */
function holdNextRequest(): () => void {
  const { promise, resolve } = Promise.withResolvers<void>()
  const first = endpoint.requests.length
  endpoint.answerWith(async (_request, index) => {
    if (index === first) await promise
    return { status: 204 }
  })
  return resolve
}

const sent = () => endpoint.requests.map(({ path, json }) => `${path} ${(json as { message: string }).message}`)

const logged = (runner: StartedProcess, message: string) => runner.jsonLines.filter((line) => line['msg'] === message)

describe('a runner that is killed (SIGKILL)', () => {
  test('while a payload is under way: another one continues the run, and no payload is sent twice', async () => {
    const release = holdNextRequest()
    const first = await fixture.startRunnerProcess()
    const start = await fixture.start(acme, { context: 'one' })
    const next = await fixture.start(acme, { context: 'two', sessionId: start.sessionId })
    await endpoint.waitForRequests(1)
    first.kill('SIGKILL')
    const second = await fixture.startRunnerProcess()
    // The other one has taken the session over before the endpoint answers.
    await waitUntil(async () => (await showSession(fixture.db, start.sessionId))?.lease?.epoch === 2)
    release()
    const [run] = await fixture.waitForRuns([start, next])
    expect(run).toMatchObject({ status: 'succeeded', attempts: 2 })
    expect(sent()).toEqual(['/orders one', '/audit one', '/orders two', '/audit two'])
    expect(run!.steps.filter(({ kind }) => kind === 'tool_call')).toHaveLength(2)
    await second.stop()
  }, 60_000)
})

describe('a runner that is paused (SIGSTOP) and wakes after its lease was taken', () => {
  test('writes nothing and sends nothing more', async () => {
    const release = holdNextRequest()
    const paused = await fixture.startRunnerProcess()
    const start = await fixture.start(acme, { context: 'one' })
    const next = await fixture.start(acme, { context: 'two', sessionId: start.sessionId })
    await endpoint.waitForRequests(1)
    paused.kill('SIGSTOP')
    const other = await fixture.startRunnerProcess()
    await waitUntil(async () => (await showSession(fixture.db, start.sessionId))?.lease?.epoch === 2)
    release()
    await fixture.waitForRuns([start, next])
    const before = await Promise.all([start, next].map(({ startId }) => fixture.run(startId)))
    // What it waited for has long been answered: it wakes up right before it would write and send.
    paused.kill('SIGCONT')
    await waitUntil(() => logged(paused, 'lease.lost').length === 1)
    // Nothing of it is under way any more when it has ended by itself.
    await paused.stop()
    expect(await Promise.all([start, next].map(({ startId }) => fixture.run(startId)))).toEqual(before)
    expect(sent()).toEqual(['/orders one', '/audit one', '/orders two', '/audit two'])
    expect(logged(paused, 'run.ended')).toMatchObject([{ outcome: 'lease_lost', run_id: start.startId }])
    await other.stop()
  }, 60_000)
})

describe('a runner that is told to stop (SIGTERM)', () => {
  // A lease that nobody would wait for: whoever continues has got it at once.
  const long = { leaseMs: 600_000, renewMs: 1_000 }

  test('ends its step, lets the session go at once between two steps, and exits by itself', async () => {
    const release = holdNextRequest()
    const stopping = await fixture.startRunnerProcess(long)
    const start = await fixture.start(acme, { context: 'one' })
    const next = await fixture.start(acme, { context: 'two', sessionId: start.sessionId })
    await endpoint.waitForRequests(1)
    const other = await fixture.startRunnerProcess(long)
    stopping.kill('SIGTERM')
    await waitUntil(() => logged(stopping, 'stopping').length === 1)
    // It takes no new session any more.
    const later = await fixture.start(acme, { context: 'three' })
    await waitUntil(() => sent().includes('/audit three'))
    release()
    expect(await stopping.exited).toEqual({ code: 0, signal: null })
    expect(logged(stopping, 'run.ended')).toMatchObject([{ outcome: 'interrupted', run_id: start.startId }])
    const [run] = await fixture.waitForRuns([start, next, later])
    // The interruption counts as no attempt of its own.
    expect(run).toMatchObject({ status: 'succeeded', attempts: 1 })
    expect(sent().toSorted()).toEqual(
      ['/orders one', '/audit one', '/orders two', '/audit two', '/orders three', '/audit three'].toSorted(),
    )
    await other.stop()
  }, 60_000)

  test('gives a step up that takes longer than its time, and the next one waits for what came of it', async () => {
    const release = holdNextRequest()
    const stopping = await fixture.startRunnerProcess({ ...long, graceMs: 300 })
    const start = await fixture.start(acme, { context: 'one' })
    await endpoint.waitForRequests(1)
    stopping.kill('SIGTERM')
    expect(await stopping.exited).toEqual({ code: 0, signal: null })
    expect((await showSession(fixture.db, start.sessionId))?.lease).toBeNull()
    const other = await fixture.startRunnerProcess(long)
    await waitUntil(async () => (await showSession(fixture.db, start.sessionId))?.lease?.epoch === 2)
    release()
    expect(await fixture.waitForRuns([start])).toMatchObject([{ status: 'succeeded', attempts: 1 }])
    expect(sent()).toEqual(['/orders one', '/audit one'])
    await other.stop()
  }, 60_000)

  test('exits although broker and database are away', async () => {
    const runner = await fixture.startRunnerProcess({}, { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/nothing' })
    await waitUntil(() => logged(runner, 'the database is unavailable; sessions wait').length === 1)
    runner.kill('SIGTERM')
    expect(await runner.exited).toEqual({ code: 0, signal: null })
  })
})
