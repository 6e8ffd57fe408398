import { beforeEach, describe, expect, test } from '@jest/globals'
import { newId, showSession } from '@workflow-service/database'
import { hearHints, waitUntil } from '@workflow-service/testkit'
import type { Agent } from '../src/agent/agent.ts'
import { RunError, RunParkedError } from '../src/run-errors.ts'
import { FAST_TIMING, NEVER_MS, type TestOrganization, useRunnerFixture } from './support/runner-fixture.ts'

const fixture = useRunnerFixture()
let acme: TestOrganization
beforeEach(async () => {
  acme = await fixture.createOrganization()
})

const suspend = (isSuspended: boolean) =>
  fixture.db.prisma.organization.update({ where: { id: acme.organizationId }, data: { isSuspended } })

const receivedContexts = () => acme.endpoint.requests.map(({ json }) => (json as { message: string }).message)

const failIfBad: Agent = async ({ run }) => {
  if (run.context === 'bad') throw new RunError('no_such_thing', 'It cannot be done')
}

describe('a start', () => {
  test('becomes one run that posts to the endpoint and has a journal', async () => {
    await fixture.startRunner()
    const start = await fixture.start(acme, { context: 'order 17' })
    const [run] = await fixture.waitForRuns([start])
    expect(run).toMatchObject({ status: 'succeeded', attempts: 1, error: null })
    expect(receivedContexts()).toEqual(['order 17'])
    expect(run!.steps.map(({ kind }) => kind)).toEqual(['message', 'note', 'tool_call', 'tool_result'])
    expect(run!.deliveries).toMatchObject([{ outcome: 'accepted', status: 204, source_name: 'Order intake' }])
  })

  test('follows the rules.yaml of its workflow, also when it follows another start of its session', async () => {
    const content = `deliveries:
  - { to: Order intake, when: 'context.startsWith("order")', payload: { message: upper(context) } }`
    acme = await fixture.createOrganization({ files: [{ name: 'rules.yaml', content }] })
    const first = await fixture.start(acme, { context: 'order 17' })
    const { sessionId } = first
    const second = await fixture.start(acme, { context: 'order 18', sessionId })
    const third = await fixture.start(acme, { context: 'question', sessionId })
    await fixture.startRunner()
    const runs = await fixture.waitForRuns([first, second, third])
    expect(runs.map(({ status }) => status)).toEqual(['succeeded', 'succeeded', 'succeeded'])
    expect(receivedContexts()).toEqual(['ORDER 17', 'ORDER 18'])
    expect(runs[2]!.steps.at(-1)?.data).toMatchObject({ code: 'no_rule_matched' })
  })

  test('hints at its run and its session', async () => {
    await fixture.startRunner()
    await expect(
      hearHints(fixture.db, acme.organizationId, ['runs', 'sessions'], () => fixture.start(acme)),
    ).resolves.toBeUndefined()
  })

  test("passes its request id to the endpoint and to the runner's log", async () => {
    await fixture.startRunner()
    const start = await fixture.start(acme)
    const [run] = await fixture.waitForRuns([start])
    expect(acme.endpoint.requests[0]?.headers['x-request-id']).toBe(run!.request_id)
    const ended = await waitUntil(() =>
      fixture.logLines.find((line) => line['run_id'] === start.startId && line['outcome']),
    )
    expect(ended).toMatchObject({ msg: 'run.ended', outcome: 'succeeded', request_id: run!.request_id })
  })

  test('runs by the sweep when its message was lost', async () => {
    await fixture.startRunner()
    const start = await fixture.start(acme, { isPublished: false })
    expect(await fixture.waitForRuns([start])).toMatchObject([{ status: 'succeeded' }])
  })

  test('runs once when its message is repeated, and messages for unknown sessions are ignored', async () => {
    await fixture.startRunner()
    const start = await fixture.start(acme)
    for (let n = 0; n < 20; n++) {
      await fixture.queue.publish({ session_id: start.sessionId })
      await fixture.queue.publish({ session_id: start.startId })
    }
    await fixture.waitForRuns([start])
    await waitUntil(async () => (await fixture.queue.depth()).ready === 0)
    expect(receivedContexts()).toEqual(['hello'])
  })
})

describe('a run that is parked', () => {
  test('frees its slot, and continues from its journal after the delay, before later starts of its session', async () => {
    const order: string[] = []
    const agent: Agent = async (agentRun) => {
      const { run, steps } = agentRun
      order.push(run.context)
      if (run.context !== 'slow' || steps.length > 0) return
      await agentRun.append([{ kind: 'note', data: { code: 'waits', text: 'for something' } }])
      throw new RunParkedError('It waits', 400)
    }
    await fixture.startRunner({ agent }, { RUNNER_CONCURRENCY: '1' })
    const parked = await fixture.start(acme, { context: 'slow' })
    const later = await fixture.start(acme, { context: 'later', sessionId: parked.sessionId })
    const other = await fixture.start(acme, { context: 'other' })
    const [run] = await fixture.waitForRuns([parked, later, other])
    expect(order).toEqual(['slow', 'other', 'slow', 'later'])
    expect(run).toMatchObject({ status: 'succeeded', attempts: 1 })
    expect(run!.steps.map(({ data }) => ('code' in data ? data.code : ''))).toEqual(['waits', 'taken_up_again'])
  })
})

describe('a session', () => {
  test('runs its starts one at a time in the order accepted, beside other sessions', async () => {
    const active = new Map<string, number>()
    let maxActive = 0
    let maxActiveInSession = 0
    const order: string[] = []
    const agent: Agent = async ({ run }) => {
      active.set(run.sessionId, (active.get(run.sessionId) ?? 0) + 1)
      maxActiveInSession = Math.max(maxActiveInSession, active.get(run.sessionId)!)
      maxActive = Math.max(
        maxActive,
        [...active.values()].reduce((sum, count) => sum + count, 0),
      )
      await new Promise((done) => setTimeout(done, 5))
      order.push(run.context)
      active.set(run.sessionId, active.get(run.sessionId)! - 1)
    }
    const sessions = await Promise.all(Array.from({ length: 4 }, (_, n) => fixture.start(acme, { context: `${n}/0` })))
    const starts = [...sessions]
    for (let number = 1; number < 8; number++) {
      for (const [n, { sessionId }] of sessions.entries()) {
        starts.push(await fixture.start(acme, { context: `${n}/${number}`, sessionId }))
      }
    }
    await fixture.startRunner({ agent })
    await fixture.waitForRuns(starts)
    expect(maxActiveInSession).toBe(1)
    expect(maxActive).toBe(4)
    for (const n of sessions.keys()) {
      const ofSession = order.filter((context) => context.startsWith(`${n}/`))
      expect(ofSession).toEqual(Array.from({ length: 8 }, (_, number) => `${n}/${number}`))
    }
  })

  test('is released after its last start, and acquired again for the next one', async () => {
    await fixture.startRunner()
    const first = await fixture.start(acme)
    await fixture.waitForRuns([first])
    await waitUntil(async () => (await showSession(fixture.db, first.sessionId))?.lease === null)
    const second = await fixture.start(acme, { sessionId: first.sessionId })
    expect(await fixture.waitForRuns([second])).toMatchObject([{ status: 'succeeded', number: 2 }])
  })

  test('continues with its next start after one that failed', async () => {
    const bad = await fixture.start(acme, { context: 'bad' })
    const good = await fixture.start(acme, { sessionId: bad.sessionId })
    await fixture.startRunner({ agent: failIfBad })
    expect(await fixture.waitForRuns([bad, good])).toMatchObject([
      { status: 'failed', error: 'no_such_thing: It cannot be done', attempts: 1 },
      { status: 'succeeded', error: null },
    ])
  })

  test('gives its earlier runs to the agent', async () => {
    const histories: unknown[] = []
    const agent: Agent = async (run) => {
      await run.append([{ kind: 'message', data: { agent: 'test', text: run.run.context } }])
      histories.push(await run.history(1))
    }
    const first = await fixture.start(acme, { context: 'one' })
    const starts = [first]
    for (const context of ['two', 'three']) {
      starts.push(await fixture.start(acme, { context, sessionId: first.sessionId }))
    }
    await fixture.startRunner({ agent })
    await fixture.waitForRuns(starts)
    expect(histories).toMatchObject([
      { runs: [], total: 0 },
      { runs: [{ context: 'one', status: 'succeeded', steps: [{ data: { text: 'one' } }] }], total: 1 },
      { runs: [{ context: 'two', workflowName: 'Forward' }], total: 2 },
    ])
  })

  test('whose lease another runner has acquired gets no further write and no further payload', async () => {
    const agent: Agent = async (run) => {
      const { sessionId } = run.run
      await fixture.db.prisma.session.update({ where: { id: sessionId }, data: { leaseEpoch: { increment: 1 } } })
      await run.append([{ kind: 'message', data: { agent: 'test', text: 'too late' } }])
    }
    const start = await fixture.start(acme)
    await fixture.startRunner({ agent, timing: { ...FAST_TIMING, leaseMs: NEVER_MS, renewMs: NEVER_MS } })
    const ended = await waitUntil(() =>
      fixture.logLines.find((line) => line['run_id'] === start.startId && line['outcome']),
    )
    expect(ended).toMatchObject({ outcome: 'lease_lost' })
    expect(await fixture.run(start.startId)).toMatchObject({ status: 'running', steps: [] })
  })
})

describe('a run that keeps failing', () => {
  test('is attempted five times, each time resuming from its journal, and ends as failed with the reason', async () => {
    const stepsSeen: number[] = []
    const agent: Agent = async (run) => {
      stepsSeen.push(run.steps.length)
      if (run.run.context === 'good') return
      await run.append([{ kind: 'message', data: { agent: 'test', text: 'step' } }])
      throw new Error('it broke')
    }
    const bad = await fixture.start(acme, { context: 'bad' })
    const good = await fixture.start(acme, { context: 'good', sessionId: bad.sessionId })
    await fixture.startRunner({ agent })
    const [failed, succeeded] = await fixture.waitForRuns([bad, good])
    expect(failed).toMatchObject({ status: 'failed', attempts: 5, error: 'internal_error: it broke' })
    expect(succeeded).toMatchObject({ status: 'succeeded' })
    expect(stepsSeen).toEqual([0, 1, 2, 3, 4, 0])
    expect(failed!.steps.filter(({ kind }) => kind === 'note')).toHaveLength(4)
  })

  test('reads the webhook sources anew in each attempt', async () => {
    const sourceNames: string[][] = []
    const agent: Agent = async (run) => {
      sourceNames.push((await run.listSources()).map(({ name }) => name))
      await fixture.db.prisma.webhookSource.updateMany({
        where: { organizationId: acme.organizationId, nameKey: 'order intake' },
        data: { name: `Order intake ${sourceNames.length}` },
      })
      if (sourceNames.length < 3) throw new Error('it broke')
    }
    const start = await fixture.start(acme)
    await fixture.startRunner({ agent })
    expect(await fixture.waitForRuns([start])).toMatchObject([{ status: 'succeeded', attempts: 3 }])
    expect(sourceNames).toEqual(['Order intake', 'Order intake 1', 'Order intake 2'].map((name) => ['Audit log', name]))
  })

  test('because it kills its runner, is not attempted a sixth time', async () => {
    const start = await fixture.start(acme)
    await fixture.db.prisma.start.update({
      where: { id: start.startId },
      data: { attempts: 5, startedAt: new Date() },
    })
    const next = await fixture.start(acme, { sessionId: start.sessionId, context: 'next' })
    await fixture.startRunner()
    const [failed, succeeded] = await fixture.waitForRuns([start, next])
    expect(failed).toMatchObject({
      status: 'failed',
      attempts: 5,
      error: expect.stringMatching(/^too_many_attempts: /),
    })
    expect(succeeded).toMatchObject({ status: 'succeeded' })
    expect(receivedContexts()).toEqual(['next'])
    expect(fixture.logLines).toContainEqual(
      expect.objectContaining({ msg: 'run.ended', run_id: start.startId, outcome: 'failed' }),
    )
  })
})

test('a run of an organization with many webhook sources reads the examples of those that it needs', async () => {
  await fixture.db.pool.query(
    `INSERT INTO webhook_sources (id, organization_id, name, name_key, description, endpoint_url, example_request_body)
     SELECT gen_random_uuid(), $1, 'Source ' || n, 'source ' || n, '', 'https://acme.example', '{"message": "text"}'
     FROM generate_series(1, 30) AS n`,
    [acme.organizationId],
  )
  await fixture.startRunner()
  expect(await fixture.waitForRuns([await fixture.start(acme)])).toMatchObject([{ status: 'succeeded' }])
  expect(receivedContexts()).toEqual(['hello'])
})

describe('a run whose organization is suspended', () => {
  test('is queued again when the dispatcher refuses its payload, and resumes without another attempt', async () => {
    const start = await fixture.start(acme, { isPublished: false })
    const executions: string[] = []
    const deliveryId = newId()
    const agent: Agent = async (attempt) => {
      executions.push(attempt.run.id)
      if (attempt.run.id !== start.startId) return
      if (executions.length === 1) await suspend(true)
      const sources = await attempt.listSources()
      const { id: sourceId } = sources.find(({ name }) => name === 'Order intake')!
      await attempt.deliver({ deliveryId, sourceId, payload: { message: 'hello' } })
    }
    await fixture.startRunner({ agent })
    await waitUntil(async () => (await showSession(fixture.db, start.sessionId))?.lease === null && executions.length)
    expect(await fixture.run(start.startId)).toMatchObject({ status: 'queued', attempts: 0 })
    await fixture.queue.publish({ session_id: start.sessionId })
    const other = await fixture.start(await fixture.createOrganization(), { isPublished: false })
    await fixture.waitForRuns([other])
    expect(executions).toEqual([start.startId, other.startId])
    expect(receivedContexts()).toEqual([])
    await suspend(false)
    expect(await fixture.waitForRuns([start])).toMatchObject([{ status: 'succeeded', attempts: 1 }])
    expect(receivedContexts()).toEqual(['hello'])
  })
})
