import { beforeEach, describe, expect, test } from '@jest/globals'
import { type Database, listRuns, newId, showSession } from '@workflow-service/database'
import { hearNotices, waitUntil } from '@workflow-service/testkit'
import type { Agent } from '../src/agent/agent.ts'
import { RunParkedError } from '../src/run-errors.ts'
import { createActiveSessions } from '../src/sessions/active-sessions.ts'
import { createSessionStore } from '../src/sessions/session-store.ts'
import { FAST_TIMING, type TestOrganization, useRunnerFixture } from './support/runner-fixture.ts'

const fixture = useRunnerFixture()
let acme: TestOrganization
beforeEach(async () => {
  acme = await fixture.createOrganization()
})

const suspend = (isSuspended: boolean) =>
  fixture.db.prisma.organization.update({ where: { id: acme.organizationId }, data: { isSuspended } })

const receivedContexts = () => acme.endpoint.requests.map(({ json }) => (json as { message: string }).message)

describe('a start', () => {
  test('becomes one run that posts to the endpoint once, with its request id, and has a journal', async () => {
    await fixture.startRunner()
    const start = await fixture.start(acme, { context: 'order 17' })
    for (let n = 0; n < 20; n++) {
      await fixture.queue.publish({ session_id: start.sessionId })
      await fixture.queue.publish({ session_id: start.startId })
    }
    const [run] = await fixture.waitForRuns([start])
    await waitUntil(async () => (await fixture.queue.depth()).ready === 0)
    expect(run).toMatchObject({ status: 'succeeded', attempts: 1, error: null })
    expect(receivedContexts()).toEqual(['order 17'])
    expect(run!.steps.map(({ kind }) => kind)).toEqual(['message', 'note', 'tool_call', 'tool_result'])
    expect(run!.deliveries).toMatchObject([{ outcome: 'accepted', status: 204, source_name: 'Order intake' }])
    expect(acme.endpoint.requests[0]?.headers['x-request-id']).toBe(run!.request_id)
    const ended = await waitUntil(() =>
      fixture.logLines.find((line) => line['run_id'] === start.startId && line['outcome']),
    )
    expect(ended).toMatchObject({ msg: 'run.ended', outcome: 'succeeded', request_id: run!.request_id })
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

  test('notifies of its run and its session', async () => {
    await fixture.startRunner()
    await expect(
      hearNotices(fixture.db, acme.organizationId, ['runs', 'sessions'], () => fixture.start(acme)),
    ).resolves.toBeUndefined()
  })
})

test('a run that is parked frees its slot, and continues from its journal after the delay, before later starts of its session', async () => {
  const order: string[] = []
  const agent: Agent = async (run) => {
    order.push(run.context)
    if (run.context !== 'slow' || order.length === 4) return
    if (run.steps.length === 0) await run.append([{ kind: 'note', data: { code: 'waits', text: 'for something' } }])
    throw new RunParkedError('It waits', order.length === 1 ? 1_000 : 1)
  }
  const parked = await fixture.start(acme, { context: 'slow' })
  const later = await fixture.start(acme, { context: 'later', sessionId: parked.sessionId })
  const other = await fixture.start(acme, { context: 'other' })
  await fixture.startRunner({ agent }, { RUNNER_CONCURRENCY: '1' })
  const [run] = await fixture.waitForRuns([parked, later, other])
  expect(order).toEqual(['slow', 'other', 'slow', 'slow', 'later'])
  expect(run).toMatchObject({ status: 'succeeded', attempts: 1 })
  // Once, as it waited for the same.
  expect(run!.steps.map(({ data }) => ('code' in data ? data.code : ''))).toEqual(['waits', 'taken_up_again'])
})

describe('a session', () => {
  test('runs its starts one at a time in the order accepted, beside as many other sessions as there are slots', async () => {
    const active: string[] = []
    let maxActive = 0
    // On a slow machine, runs may begin so late after each other that no three are active in these 5 ms.
    const three = Promise.withResolvers<void>()
    const order: string[] = []
    const agent: Agent = async (run) => {
      expect(active).not.toContain(run.sessionId)
      maxActive = Math.max(maxActive, active.push(run.sessionId))
      if (maxActive === 3) three.resolve()
      await three.promise
      await new Promise((done) => setTimeout(done, 5))
      order.push(run.context)
      active.splice(active.indexOf(run.sessionId), 1)
    }
    const organizations = [acme, acme, await fixture.createOrganization(), acme]
    const start = (n: number, number: number, sessionId?: string) =>
      fixture.start(organizations[n]!, {
        context: `${n}/${number}`,
        isPublished: false,
        ...(sessionId && { sessionId }),
      })
    const sessions = await Promise.all(organizations.map((_, n) => start(n, 0)))
    const starts = [...sessions]
    for (let number = 1; number < 8; number++) {
      for (const [n, { sessionId }] of sessions.entries()) {
        starts.push(await start(n, number, sessionId))
      }
    }
    await fixture.startRunner({ agent }, { RUNNER_CONCURRENCY: '3', RUNNER_ORGANIZATION_SHARE: '100' })
    const runs = await fixture.waitForRuns(starts)
    expect(new Set(runs.map(({ status }) => status))).toEqual(new Set(['succeeded']))
    expect(maxActive).toBe(3)
    for (const n of sessions.keys()) {
      const ofSession = order.filter((context) => context.startsWith(`${n}/`))
      expect(ofSession).toEqual(Array.from({ length: 8 }, (_, number) => `${n}/${number}`))
    }
  })
})

describe('a run that keeps failing', () => {
  test('is attempted five times, each time resuming from its journal, and ends as failed with the reason', async () => {
    const stepsSeen: number[] = []
    const agent: Agent = async (run) => {
      stepsSeen.push(run.steps.length)
      if (run.context === 'good') return
      await run.append([{ kind: 'message', data: { agent: 'test', text: 'step' } }])
      throw new Error('it broke')
    }
    const bad = await fixture.start(acme, { context: 'bad' })
    const good = await fixture.start(acme, { context: 'good', sessionId: bad.sessionId })
    // As after five runners that it killed.
    const deadly = await fixture.start(acme, { context: 'deadly' })
    const change = { attempts: 5, startedAt: new Date() }
    await fixture.db.prisma.start.update({ where: { id: deadly.startId }, data: change })
    await fixture.startRunner({ agent })
    const [failed, succeeded, exhausted] = await fixture.waitForRuns([bad, good, deadly])
    expect(failed).toMatchObject({ status: 'failed', attempts: 5, error: 'internal_error: it broke' })
    expect(succeeded).toMatchObject({ status: 'succeeded' })
    expect(stepsSeen).toEqual([0, 1, 2, 3, 4, 0])
    expect(failed!.steps.filter(({ kind }) => kind === 'note')).toHaveLength(4)
    expect(exhausted).toMatchObject({ attempts: 5, error: expect.stringMatching(/^too_many_attempts: /), steps: [] })
    const ended = { msg: 'run.ended', run_id: deadly.startId, outcome: 'failed' }
    expect(fixture.logLines).toContainEqual(expect.objectContaining(ended))
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

test('a run whose organization is suspended is queued again when the dispatcher refuses its payload, and resumes without another attempt', async () => {
  const start = await fixture.start(acme, { isPublished: false })
  const executions: string[] = []
  const deliveryId = newId()
  const agent: Agent = async (attempt) => {
    executions.push(attempt.id)
    if (attempt.id !== start.startId) return
    if (executions.length === 1) await suspend(true)
    const sources = await attempt.listSources()
    const { id: sourceId } = sources.find(({ name }) => name === 'Order intake')!
    const delivery = {
      id: deliveryId,
      source_id: sourceId,
      source_name: 'Order intake',
      payload: { message: 'hello' },
    }
    await attempt.deliver({ call_id: 'one', tool: 'test', delivery }, true)
  }
  await fixture.startRunner({ agent })
  await waitUntil(async () => executions.length && (await showSession(fixture.db, start.sessionId))?.lease === null)
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

/** Gives the workflow an hourly auto-run that is next due at this time. */
async function schedule({ workflowId }: TestOrganization, dueAt: Date): Promise<void> {
  await fixture.db.prisma.workflow.update({
    where: { id: workflowId },
    data: {
      autoRunEnabled: true,
      autoRunFrequency: 'hourly',
      autoRunAnchorAt: new Date(dueAt.getTime() - 3_600_000),
      autoRunNextAt: dueAt,
    },
  })
}

test('an auto-run that is due is started, and the built-in agent sends its time; one that is not due is not started', async () => {
  const intake = { 'Order intake': { example: { scheduled_for: '2026-01-31', note: null } } }
  const timed = await fixture.createOrganization({ sources: intake, files: [] })
  await schedule(acme, new Date(Date.now() + 1_800_000))
  const dueAt = new Date(Date.now() - 60_000)
  await schedule(timed, dueAt)
  await fixture.startRunner()
  const [request] = await timed.endpoint.waitForRequests(1)
  expect(request!.json).toEqual({ scheduled_for: dueAt.toISOString(), note: null })
  expect(await listRuns(fixture.db, acme.organizationId, { limit: 10 })).toEqual([])
  await waitUntil(() => fixture.logLines.some((line) => line['msg'] === 'auto_run.started'))
})

test('an auto-run is started behind a hundred others whose time zone only a newer process knows', async () => {
  const dueAt = new Date(Date.now() - 60_000)
  await schedule(acme, dueAt)
  const other = await fixture.createOrganization()
  const timing = JSON.stringify({ time: '09:20', day: null, time_zone: 'Europe/Atlantis' })
  await fixture.db.pool.query(
    `INSERT INTO workflows (id, organization_id, name, description, scope, search_text, is_active, auto_run_enabled,
       auto_run_frequency, auto_run_anchor_at, auto_run_next_at, auto_run_timing)
     SELECT gen_random_uuid(), organization_id, name, description, scope, search_text, true, true, 'daily', $2, $2, $3
     FROM workflows, generate_series(1, 100) WHERE id = $1`,
    [other.workflowId, new Date(dueAt.getTime() - 60_000), timing],
  )
  await fixture.startRunner()
  await acme.endpoint.waitForRequests(1)
  const failed = fixture.logLines.filter(
    ({ msg, organization_id: id }) => msg === 'task.failed' && id === other.organizationId,
  )
  expect(failed.length).toBeGreaterThanOrEqual(100)
})

test('one organization with 150 sessions on a hanging endpoint does not delay another organization', async () => {
  const quick = await fixture.createOrganization()
  acme.endpoint.answerWith('hang')
  await Promise.all(Array.from({ length: 150 }, () => fixture.start(acme)))
  await fixture.startRunner({ timing: { ...FAST_TIMING, sweepMs: 2_000, leaseMs: 15_000, graceMs: 100 } })
  await acme.endpoint.waitForRequests(75)
  await fixture.start(quick)
  // The promise is 2 s; without free slots it would take the 30 s of the slow organization's time-outs.
  await quick.endpoint.waitForRequests(1, 10_000)
  expect(acme.endpoint.requests.length).toBeLessThanOrEqual(75)
})

test('the end of a run counts that was recorded although the answer was lost: the next run follows, or the session is released', async () => {
  const { sessionId } = await fixture.start(acme, { isPublished: false })
  const next = await fixture.start(acme, { sessionId, isPublished: false })
  let lostAnswers = 0
  const query = async (statement: string): Promise<unknown> => {
    const result = await fixture.db.pool.query(statement)
    if (lostAnswers-- > 0) throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
    return result
  }
  const activeSessions = createActiveSessions(10)
  const store = createSessionStore({
    db: { pool: { query } as unknown as Database['pool'], ping: () => fixture.db.ping() },
    owner: 'test',
    leaseMs: 60_000,
    perOrganization: 10,
    activeSessions,
  })
  const { sessions } = await store.acquire([sessionId])
  const session = activeSessions.add(sessions[0]!)
  const finish = (number: number) => {
    lostAnswers = 1
    return store.finishRun(session, { number, status: 'succeeded', error: null, shouldClaimNext: true })
  }
  expect(await finish(1)).toMatchObject({ kind: 'run', run: { id: next.startId, number: 2 } })
  expect(await finish(2)).toEqual({ kind: 'released' })
  expect(await showSession(fixture.db, sessionId)).toMatchObject({ finished: 2, lease: null })
})

test("the runner's HTTP server answers /healthz, /readyz and /metrics, and any other path with an error", async () => {
  const { port } = await fixture.startRunner()
  const get = (path: string) => fetch(`http://127.0.0.1:${port}${path}`)
  await fixture.waitForRuns([await fixture.start(acme)])
  expect((await get('/healthz')).status).toBe(200)
  expect(await (await get('/readyz')).json()).toEqual({ status: 'ok', checks: { postgres: 'ok', rabbitmq: 'ok' } })
  const unknown = await get('/v1/workflows')
  expect(unknown.status).toBe(404)
  expect(await unknown.json()).toMatchObject({ error: { code: 'not_found', request_id: expect.any(String) } })
  // The dispatcher records the end of the run, and the runner counts it after that.
  const metrics = await waitUntil(async () => {
    const text = await (await get('/metrics')).text()
    return /^runner_runs_total\{/m.test(text) && text
  })
  for (const line of [
    /^runner_runs_total\{outcome="succeeded",service="runner"\} 1$/m,
    /^runner_run_duration_seconds_count\{service="runner",outcome="succeeded"\} 1$/m,
    /^runner_step_duration_seconds_count\{service="runner",kind="tool_result"\} 1$/m,
    /^runner_start_wait_seconds_count\{service="runner"\} 1$/m,
    /^runner_sessions_taken_total\{by="(message|sweep)",service="runner"\} 1$/m,
    /^runner_leases_held\{service="runner"\} \d+$/m,
    /^runner_leases_lost_total\{service="runner"\} 0$/m,
    /^runner_places\{service="runner"\} 100$/m,
    /^sessions_waiting\{service="runner"\} \d+$/m,
    /^sessions_waiting_oldest_seconds\{service="runner"\} \d/m,
    /^session_queue_messages\{queue="ready",service="runner"\} 0$/m,
  ]) {
    expect(metrics).toMatch(line)
  }
})
