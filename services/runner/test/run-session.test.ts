import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { showSession } from '@workflow-service/database'
import { waitUntil } from '@workflow-service/testkit'
import type { Agent, AgentRun } from '../src/agent/agent.ts'
import { RunError } from '../src/run-errors.ts'
import type { RunningRunner } from '../src/index.ts'
import { FAST, startRunnerFixture, type TestOrganization, type RunnerFixture } from './support/runner-fixture.ts'

let fixture: RunnerFixture
let acme: TestOrganization
let runner: RunningRunner | undefined
beforeAll(async () => {
  fixture = await startRunnerFixture()
})
afterAll(() => fixture.stop())
beforeEach(async () => {
  acme = await fixture.createOrganization()
})
afterEach(async () => {
  await runner?.stop()
  runner = undefined
})

const failingAgent: Agent = async ({ run }) => {
  if (run.context === 'bad') throw new RunError('no_such_thing', 'It cannot be done')
}

const contexts = ({ endpoint }: TestOrganization) =>
  endpoint.requests.map(({ json }) => (json as { message: string }).message)

describe('a start', () => {
  test('becomes one run that posts to the endpoint, with a journal that tells it', async () => {
    runner = await fixture.startRunner()
    const start = await fixture.start(acme, { context: 'order 17' })
    const [run] = await fixture.waitForRuns([start])
    expect(run).toMatchObject({ status: 'succeeded', attempts: 1, error: null })
    expect(contexts(acme)).toEqual(['order 17'])
    expect(run!.steps.map(({ kind }) => kind)).toEqual(['message', 'note', 'tool_call', 'tool_result'])
    expect(run!.deliveries).toMatchObject([{ outcome: 'accepted', status: 204, source_name: 'Order intake' }])
  })

  test("carries its request id to the endpoint and into the runner's log", async () => {
    runner = await fixture.startRunner()
    const start = await fixture.start(acme)
    const [run] = await fixture.waitForRuns([start])
    expect(acme.endpoint.requests[0]?.headers['x-request-id']).toBe(run!.request_id)
    const ended = await waitUntil(() =>
      fixture.logLines.find((line) => line['run_id'] === start.startId && line['outcome']),
    )
    expect(ended).toMatchObject({ msg: 'run.ended', outcome: 'succeeded', request_id: run!.request_id })
  })

  test('is found by the sweep when its message was lost', async () => {
    runner = await fixture.startRunner({ timing: { sweepMs: 50 } })
    const start = await fixture.start(acme, { isPublished: false })
    expect(await fixture.waitForRuns([start])).toMatchObject([{ status: 'succeeded' }])
  })

  test('runs once, however many messages there are for it, and for sessions that do not exist', async () => {
    runner = await fixture.startRunner()
    const start = await fixture.start(acme)
    for (let n = 0; n < 20; n++) {
      await fixture.queue.publish({ session_id: start.sessionId })
      await fixture.queue.publish({ session_id: start.startId })
    }
    await fixture.waitForRuns([start])
    await waitUntil(async () => (await fixture.queue.depth()).ready === 0)
    expect(contexts(acme)).toEqual(['hello'])
  })
})

describe('a session', () => {
  test('runs its starts one at a time in the order accepted, while others run beside it', async () => {
    const underWay = new Map<string, number>()
    let mostInAll = 0
    let mostInOne = 0
    const order: string[] = []
    const agent: Agent = async ({ run }) => {
      underWay.set(run.sessionId, (underWay.get(run.sessionId) ?? 0) + 1)
      mostInOne = Math.max(mostInOne, underWay.get(run.sessionId)!)
      mostInAll = Math.max(
        mostInAll,
        [...underWay.values()].reduce((sum, count) => sum + count, 0),
      )
      await new Promise((done) => setTimeout(done, 5))
      order.push(run.context)
      underWay.set(run.sessionId, underWay.get(run.sessionId)! - 1)
    }
    const sessions = await Promise.all(Array.from({ length: 4 }, (_, n) => fixture.start(acme, { context: `${n}/0` })))
    const starts = [...sessions]
    for (let number = 1; number < 8; number++) {
      for (const [n, { sessionId }] of sessions.entries()) {
        starts.push(await fixture.start(acme, { context: `${n}/${number}`, sessionId }))
      }
    }
    runner = await fixture.startRunner({ agent })
    await fixture.waitForRuns(starts)
    expect(mostInOne).toBe(1)
    expect(mostInAll).toBe(4)
    for (const n of sessions.keys()) {
      const mine = order.filter((context) => context.startsWith(`${n}/`))
      expect(mine).toEqual(Array.from({ length: 8 }, (_, number) => `${n}/${number}`))
    }
  })

  test('is let go after its last start, and taken up again for the next one', async () => {
    runner = await fixture.startRunner()
    const first = await fixture.start(acme)
    await fixture.waitForRuns([first])
    await waitUntil(async () => (await showSession(fixture.db, first.sessionId))?.lease === null)
    const second = await fixture.start(acme, { sessionId: first.sessionId })
    expect(await fixture.waitForRuns([second])).toMatchObject([{ status: 'succeeded', number: 2 }])
  })

  test('goes on with its next start after one that failed', async () => {
    const bad = await fixture.start(acme, { context: 'bad' })
    const good = await fixture.start(acme, { sessionId: bad.sessionId })
    runner = await fixture.startRunner({ agent: failingAgent })
    expect(await fixture.waitForRuns([bad, good])).toMatchObject([
      { status: 'failed', error: 'no_such_thing: It cannot be done', attempts: 1 },
      { status: 'succeeded', error: null },
    ])
  })

  test('tells its earlier runs to the agent', async () => {
    const told: unknown[] = []
    const agent: Agent = async (run: AgentRun) => {
      await run.append([{ kind: 'message', data: { agent: 'test', text: run.run.context } }])
      told.push(await run.history(1))
    }
    const first = await fixture.start(acme, { context: 'one' })
    const starts = [first]
    for (const context of ['two', 'three'])
      starts.push(await fixture.start(acme, { context, sessionId: first.sessionId }))
    runner = await fixture.startRunner({ agent })
    await fixture.waitForRuns(starts)
    expect(told).toMatchObject([
      { runs: [], total: 0 },
      { runs: [{ context: 'one', status: 'succeeded', steps: [{ data: { text: 'one' } }] }], total: 1 },
      { runs: [{ context: 'two', workflowName: 'Forward' }], total: 2 },
    ])
  })
})

describe('a run that keeps failing', () => {
  test('is tried five times, each from where its journal ends, and ends as failed with the reason', async () => {
    const seen: number[] = []
    const agent: Agent = async (run) => {
      seen.push(run.steps.length)
      if (run.run.context === 'good') return
      await run.append([{ kind: 'message', data: { agent: 'test', text: 'step' } }])
      throw new Error('it broke')
    }
    const bad = await fixture.start(acme, { context: 'bad' })
    const good = await fixture.start(acme, { context: 'good', sessionId: bad.sessionId })
    runner = await fixture.startRunner({ agent, timing: FAST })
    const [failed, succeeded] = await fixture.waitForRuns([bad, good])
    expect(failed).toMatchObject({ status: 'failed', attempts: 5, error: 'internal_error: it broke' })
    expect(succeeded).toMatchObject({ status: 'succeeded' })
    expect(seen).toEqual([0, 1, 2, 3, 4, 0])
    expect(failed!.steps.filter(({ kind }) => kind === 'note')).toHaveLength(4)
  })

  test('is told the webhook sources anew at each attempt', async () => {
    const told: string[][] = []
    const agent: Agent = async (run) => {
      told.push((await run.listSources()).map(({ name }) => name))
      await fixture.db.prisma.webhookSource.updateMany({
        where: { organizationId: acme.organizationId, nameKey: 'order intake' },
        data: { name: `Order intake ${told.length}` },
      })
      if (told.length < 3) throw new Error('it broke')
    }
    const start = await fixture.start(acme)
    runner = await fixture.startRunner({ agent, timing: FAST })
    expect(await fixture.waitForRuns([start])).toMatchObject([{ status: 'succeeded', attempts: 3 }])
    expect(told).toEqual(
      [1, 2, 3].map((attempt) => ['Audit log', attempt === 1 ? 'Order intake' : `Order intake ${attempt - 1}`]),
    )
  })

  test('because it kills its runner, is not tried a sixth time', async () => {
    const start = await fixture.start(acme)
    await fixture.db.prisma.start.update({ where: { id: start.startId }, data: { attempts: 5, startedAt: new Date() } })
    const next = await fixture.start(acme, { sessionId: start.sessionId, context: 'next' })
    runner = await fixture.startRunner()
    const [failed, succeeded] = await fixture.waitForRuns([start, next])
    expect(failed).toMatchObject({
      status: 'failed',
      attempts: 5,
      error: expect.stringMatching(/^too_many_attempts: /),
    })
    expect(succeeded).toMatchObject({ status: 'succeeded' })
    expect(contexts(acme)).toEqual(['next'])
  })
})
