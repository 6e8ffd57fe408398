import { beforeAll, describe, expect, test } from '@jest/globals'
import type { AppOperationId } from '@workflow-service/contract'
import { claimTrial, finishTrial, newId, recordRunPrompt } from '@workflow-service/database'
import { beginTransaction, countLocked, untilLocked, waitUntil } from '@workflow-service/testkit'
import { type Caller, useDataApp } from './support/use-app.ts'

const data = useDataApp()
let everyones: string
let listed: string
let hidden: string
beforeAll(async () => {
  everyones = await data.createWorkflow('Book orders')
  listed = await data.createWorkflow('Send invoices', [data.app.organization.member.userId])
  hidden = await data.createWorkflow('Salaries', [])
})

const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000)

describe('Runs', () => {
  test('are listed newest first, a page after the other, with each filter', async () => {
    const { admin } = data.app.organization
    const workflow = await data.createWorkflow('Filtered')
    const ids: string[] = []
    for (const [index, status] of (['succeeded', 'failed', 'queued', 'running'] as const).entries()) {
      ids.unshift(await data.createRun(workflow, { status, createdAt: minutesAgo(60 - index), userId: admin.userId }))
    }
    const list = async (query: Record<string, string | number>) =>
      (await data.call(admin, 'listRuns', { query: { workflow_id: workflow, ...query } })).body
    expect(await data.app.listAll(admin, 'listRuns', 'id', { workflow_id: workflow })).toEqual(ids)
    const startedBy = { kind: 'person', id: admin.userId, name: 'The admin' }
    const newest = { workflow: { id: workflow, name: 'Filtered' }, status: 'running', origin: 'app' }
    expect((await list({})).data[0]).toMatchObject({ ...newest, started_by: startedBy })
    expect((await list({ status: 'failed' })).data.map(({ id }) => id)).toEqual([ids[2]])
    expect((await list({ since: minutesAgo(58.5).toISOString() })).data.map(({ id }) => id)).toEqual(ids.slice(0, 2))
    expect((await list({ until: minutesAgo(58.5).toISOString() })).data.map(({ id }) => id)).toEqual(ids.slice(2))
  })

  test('of a session are in the order of their numbers, and the session shows the text of the latest', async () => {
    const sessionId = newId()
    const ids: string[] = []
    for (const number of [1, 2, 3]) {
      // The order of the times is another one.
      const context = ` \nBook ${number} pumps\nfor Ada`
      ids.unshift(await data.createRun(everyones, { sessionId, number, createdAt: minutesAgo(number), context }))
    }
    expect(await data.app.listAll('admin', 'listRuns', 'id', { session_id: sessionId })).toEqual(ids)
    const { body } = await data.call('admin', 'getSession', { params: { session_id: sessionId } })
    expect(body.first_line).toBe('Book 3 pumps')
  })

  test('that the built-in agent refused have a draft of rules for those who see them', async () => {
    const source = 'Warehouse'
    await data.saveSource({ name: source, example_request_body: { quantity: 1 } })
    const refuse = async (workflowId: string) => {
      const id = await data.createRun(workflowId, { status: 'failed', error: 'payload_incomplete: no' })
      const missing = [{ source, field: 'quantity', closest: 'Quantitiy' }]
      const details = { sources: [source], missing, unusable: [], unused: ['Quantitiy'] }
      await data.addSteps(id, ['note', { code: 'payload_incomplete', text: 'no', details }])
      return { params: { run_id: id } }
    }
    const { body } = await data.call('member', 'getRulesDraft', await refuse(everyones))
    expect(body.content).toContain('- to: "Warehouse"\n    payload:\n      quantity: number(fields.Quantitiy)\n')
    const invisible = await refuse(hidden)
    expect(await data.call('admin', 'getRulesDraft', invisible)).toMatchObject({ status: 200 })
    expect(await data.call('member', 'getRulesDraft', invisible)).toMatchObject({ status: 404 })
    const rejected = { params: { run_id: await data.createRun(everyones, { status: 'failed' }) } }
    expect(await data.call('admin', 'getRulesDraft', rejected)).toMatchObject({ status: 404 })
  })

  test('are cancelled by those who see them, with the name of who did it, and only while they have not ended', async () => {
    const runId = await data.createRun(everyones, { status: 'queued' })
    const { body } = await data.call('member', 'cancelRun', { params: { run_id: runId } })
    expect(body).toMatchObject({ status: 'cancelled', cancelled_by: 'The member', finished_at: expect.any(String) })
    expect((await data.call('admin', 'cancelRun', { params: { run_id: runId } })).error.code).toBe('run_ended')
    const invisible = await data.createRun(hidden, { status: 'queued' })
    expect(await data.call('member', 'cancelRun', { params: { run_id: invisible } })).toMatchObject({ status: 404 })
    const queue = { body: { kind: 'workflow', id: hidden } } as const
    expect((await data.call('member', 'cancelQueuedRuns', queue)).body).toEqual({ cancelled: 0, is_more: false })
    expect((await data.call('admin', 'cancelQueuedRuns', queue)).body).toEqual({ cancelled: 1, is_more: false })
  })

  test('are not cancelled by a member who waited while another person took away the access', async () => {
    const workflowId = await data.createWorkflow('Offers', [data.app.organization.member.userId])
    const sessionId = newId()
    const runId = await data.createRun(workflowId, { status: 'queued', sessionId })
    using other = await beginTransaction(data.app.db.pool)
    await other.query('UPDATE sessions SET waiting_since = now() WHERE id = $1', [sessionId])
    await other.query('DELETE FROM workflow_users WHERE workflow_id = $1', [workflowId])
    const cancelling = Promise.all([
      data.call('member', 'cancelRun', { params: { run_id: runId } }),
      data.call('member', 'cancelQueuedRuns', { body: { kind: 'workflow', id: workflowId } }),
    ])
    await waitUntil(async () => (await countLocked(data.app.db.pool, 'sessions')) === 2)
    await other.query('COMMIT')
    expect(await cancelling).toMatchObject([{ status: 404 }, { body: { cancelled: 0 } }])
    expect((await data.call('admin', 'getRun', { params: { run_id: runId } })).body.status).toBe('queued')
  })

  test('of workflows that a member does not see are neither listed nor found', async () => {
    const sessionId = newId()
    const runs = {
      everyones: await data.createRun(everyones, { sessionId, number: 1 }),
      listed: await data.createRun(listed, { sessionId, number: 2 }),
      hidden: await data.createRun(hidden, { sessionId, number: 3 }),
    }
    const seenBy = async (person: Caller, query: Record<string, string>) => {
      const { body } = await data.call(person, 'listRuns', { query: { limit: 100, ...query } })
      return Object.values(runs).map((run) => body.data.some(({ id }) => id === run))
    }
    const queries: Record<string, string>[] = [{}, { session_id: sessionId }]
    for (const query of queries) {
      expect(await seenBy('admin', query)).toEqual([true, true, true])
      expect(await seenBy('member', query)).toEqual([true, true, false])
    }
    expect(await seenBy('member', { workflow_id: hidden })).toEqual([false, false, false])
  })

  test('and sessions of a member are found behind any number of newer ones that the member does not see', async () => {
    const { id, member } = await data.app.createOrganization()
    const seen = await data.createWorkflow('Seen', [member.userId], id)
    const busy = await data.createWorkflow('Busy', [], id)
    const sessionId = newId()
    const mine = await data.createRun(seen, { sessionId, createdAt: minutesAgo(600) })
    await data.app.db.pool.query(
      `WITH opened AS (
         INSERT INTO sessions (id, organization_id, last_start_number, created_at)
         SELECT gen_random_uuid(), $1, 4, now() + interval '1 minute' FROM generate_series(1, 250) RETURNING id
       )
       INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id)
       SELECT gen_random_uuid(), $1, $2, id, n, 'api', 'go', 'r' FROM opened, generate_series(1, 4) AS n`,
      [id, busy],
    )
    for (const [list, only] of [
      ['listRuns', mine],
      ['listSessions', sessionId],
    ] as const) {
      const { body } = await data.call(member, list)
      expect(body).toMatchObject({ data: [{ id: only }], pagination: { has_more: false } })
    }
  })

  test('have their journal, tokens and deliveries, bounded', async () => {
    const runId = await data.createRun(everyones)
    const sourceId = await data.saveSource()
    const delivery = await data.send(sourceId, runId)
    const answer = { turn: 1, model: 'm', parts: [], finish_reason: 'stop', input_tokens: 1_000, output_tokens: 20 }
    const steps = [
      ['model_answer', answer],
      ['model_answer', { ...answer, output_tokens: null }],
      ['note', { code: 'large', text: 'x'.repeat(1_500_000) }],
      ['note', { code: 'too_large', text: 'x'.repeat(1_500_000) }],
      ['note', { code: 'small', text: 'x' }],
    ] as const
    await data.addSteps(runId, ...steps)
    const { body } = await data.call('admin', 'getRun', { params: { run_id: runId } })
    expect(body).toMatchObject({ input_tokens: 2_000, output_tokens: 20, context: 'Order 17' })
    const [keys, note] = [Object.keys(answer), ['code', 'text']]
    const keysOf = body.steps.map(({ data: step }) => Object.keys(step as object))
    expect(keysOf).toEqual([keys, keys, note, ['omitted_bytes'], note])
    expect(body.deliveries).toMatchObject([{ id: delivery.id, outcome: 'accepted' }])
  })
})

test('Sessions are opened once for an id, listed, closed once, and stay closed when the first request is repeated', async () => {
  const [id, older] = [newId(), newId()]
  await data.call('member', 'createSession', { body: { id: older } })
  const opened = await data.call('member', 'createSession', { body: { id } })
  expect(opened).toMatchObject({ status: 201, body: { id, is_open: true, start_count: 0, runs: [] } })
  const page = await data.call('member', 'listSessions', { query: { state: 'open', limit: 1 } })
  expect(page.body.data.map((session) => session.id)).toEqual([id])
  const next = { state: 'open', limit: 1, cursor: page.body.pagination.next_cursor ?? '' }
  expect((await data.call('member', 'listSessions', { query: next })).body.data[0]?.id).toBe(older)
  const params = { session_id: id }
  const closed = await data.call('member', 'closeSession', { params })
  expect(closed.body).toMatchObject({ is_open: false, closed_at: expect.any(String) })
  expect((await data.call('member', 'closeSession', { params })).body).toEqual(closed.body)
  expect((await data.call('member', 'createSession', { body: { id } })).body).toEqual(closed.body)
  expect((await data.call('member', 'listSessions', { query: { state: 'closed' } })).body.data[0]?.id).toBe(id)
  expect(await data.app.auditOf(id)).toMatchObject([{ action: 'session.opened' }, { action: 'session.closed' }])
  const { owner } = await data.app.createOrganization()
  expect((await data.call(owner, 'createSession', { body: { id } })).error.code).toBe('id_taken')
})

test('Sessions with a run of a workflow that a member cannot see do not exist for the member', async () => {
  const [secret, shared] = [newId(), newId()]
  for (const [sessionId, second] of [
    [secret, hidden],
    [shared, listed],
  ] as const) {
    await data.createRun(everyones, { sessionId, number: 1 })
    await data.createRun(second, { sessionId, number: 2 })
  }
  const seenBy = async (person: Caller) => {
    const list = (await data.call(person, 'listSessions', { query: { limit: 100 } })).body.data
    return await Promise.all(
      [secret, shared].map(async (id) => [
        (await data.call(person, 'getSession', { params: { session_id: id } })).status,
        list.some((session) => session.id === id),
        (await data.call(person, 'search', { query: { q: id } })).body.data.length,
      ]),
    )
  }
  const [isSeen, isUnseen] = [
    [200, true, 1],
    [404, false, 0],
  ]
  expect([await seenBy('admin'), await seenBy('member')]).toEqual([
    [isSeen, isSeen],
    [isUnseen, isSeen],
  ])
  const params = { session_id: secret }
  expect((await data.call('member', 'createSession', { body: { id: secret } })).error.code).toBe('id_taken')
  expect((await data.call('member', 'closeSession', { params })).status).toBe(404)
  // It was not closed nevertheless.
  expect((await data.call('admin', 'getSession', { params })).body.is_open).toBe(true)
})

test('A session that gets a run of a hidden workflow while a member waits to close it is not closed by the member', async () => {
  const id = newId()
  await data.createRun(everyones, { sessionId: id, number: 1 })
  using other = await beginTransaction(data.app.db.pool)
  await other.query('UPDATE sessions SET last_start_number = 2 WHERE id = $1', [id])
  await other.query(
    `INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id)
     VALUES ($1, $2, $3, $4, 2, 'app', 'go', 'r')`,
    [newId(), data.app.organization.id, hidden, id],
  )
  const params = { session_id: id }
  const closing = data.call('member', 'closeSession', { params })
  await untilLocked(data.app.db.pool, 'sessions')
  await other.query('COMMIT')
  expect((await closing).status).toBe(404)
  expect((await data.call('admin', 'getSession', { params })).body.is_open).toBe(true)
})

test('A trial in a session that got a run of a workflow that the member cannot see meanwhile shows the member nothing', async () => {
  const trial = { workflow_id: everyones, trial_id: newId() }
  const sessionId = newId()
  await data.createRun(everyones, { sessionId, number: 1 })
  const tried = { id: trial.trial_id, session_id: sessionId, context: 'What was said before?' }
  const params = { workflow_id: everyones }
  expect((await data.call('member', 'tryWorkflow', { params, body: tried })).status).toBe(202)
  await data.createRun(hidden, { sessionId, number: 2, context: 'The salary is 5,000.' })
  const { run } = (await claimTrial(data.app.db, 60_000))!
  // What the agent answers is made of the runs before this number.
  expect(run).toMatchObject({ id: trial.trial_id, sessionId, number: 3 })
  const step = ['model_answer', { parts: [{ type: 'text', text: 'The salary is 5,000.' }] }] as const
  await finishTrial(data.app.db, { ...run, error: null, steps: [{ kind: step[0], data: step[1] as never }] })
  expect((await data.call('member', 'getTrial', { params: trial })).status).toBe(404)
  const kept = { name: 'A case', of: { trial_id: trial.trial_id }, version: null }
  const saved = await data.call('member', 'saveCase', { params: { ...params, case_id: newId() }, body: kept })
  expect(saved.error.details).toMatchObject([{ field: 'of.trial_id' }])
})

test('A trial that is kept as a case again, as its response was lost, is kept once, also if another trial has replaced it', async () => {
  const params = { workflow_id: everyones }
  const tryOnce = async (context: string) => {
    const body = { id: newId(), session_id: null, context }
    expect((await data.call('admin', 'tryWorkflow', { params, body })).status).toBe(202)
    return body.id
  }
  const trialId = await tryOnce('go')
  const { run } = (await claimTrial(data.app.db, 60_000))!
  await finishTrial(data.app.db, { ...run, error: null, steps: [] })
  const request = {
    params: { ...params, case_id: newId() },
    body: { name: 'A case', of: { trial_id: trialId }, version: null },
  }
  const kept = await data.call('admin', 'saveCase', request)
  expect(kept.body).toMatchObject({ name: 'A case', context: 'go' })
  await tryOnce('another')
  expect(await data.call('admin', 'saveCase', request)).toMatchObject({ status: 200, body: kept.body })
  const other = { ...request, body: { ...request.body, name: 'Another' } }
  expect((await data.call('admin', 'saveCase', other)).status).toBe(409)
  const edit = { ...request, body: { ...request.body, version: kept.body.version } }
  expect((await data.call('admin', 'saveCase', edit)).status).toBe(422)
})

const answer = (turn: number, text: string) => {
  const parts = [{ type: 'text', text }]
  return ['model_answer', { turn, model: 'm', parts, finish_reason: 'stop', ends_by_call: true }] as const
}

describe('What a model was asked', () => {
  const instructions = 'You execute one run of a workflow.'
  const tool = { name: 'end_run', description: 'Ends the run.', schema: { type: 'object' } }
  test('is shown for each request, also for one without an answer, and what requests share is kept once', async () => {
    const runId = await data.createRun(everyones, { status: 'running' })
    const first = { instructions, tools: [], message: 'Order 17' }
    const second = { ...first, tools: [tool] }
    // A resumed run records a request again.
    for (const [position, prompt] of [first, first, first, first, second].entries()) {
      await recordRunPrompt(data.app.db, runId, Math.floor(position / 2), prompt)
    }
    await data.addSteps(runId, answer(1, 'I think.'), answer(2, 'I still think.'))
    const { body } = await data.call('admin', 'getRunPrompts', { params: { run_id: runId } })
    expect(body.prompts).toEqual([
      { ...first, omitted_bytes: null },
      { ...second, omitted_bytes: null },
    ])
    expect(body.requests).toEqual([
      { turn: 1, prompt: 0, messages: 0, is_answered: true },
      { turn: 2, prompt: 0, messages: 2, is_answered: true },
      { turn: 3, prompt: 1, messages: 4, is_answered: false },
    ])
    expect(body.messages[0]).toEqual({ role: 'assistant', content: [{ type: 'text', text: 'I think.' }] })
    expect(body.messages[1]).toMatchObject({ role: 'user', content: expect.stringContaining('called no tool') })
  })

  test('is empty for a run without a model', async () => {
    const { body } = await data.call('admin', 'getRunPrompts', { params: { run_id: await data.createRun(everyones) } })
    expect(body).toEqual({ prompts: [], messages: [], requests: [] })
  })
})

let sourceId: string
const seen = {} as Record<string, string>
const unseen = {} as Record<string, string>
const LISTS = ['listWorkflows', 'listRuns', 'listSessions', 'listDeliveries', 'listAllDeliveries'] as const

const read = async (person: Caller, list: AppOperationId, query: Record<string, string>) =>
  await data.call(person, list, { params: { source_id: sourceId }, query })

describe('Entries by their ids', () => {
  beforeAll(async () => {
    sourceId = await data.saveSource()
    for (const [ids, userIds] of [
      [seen, null],
      [unseen, []],
    ] as const) {
      const workflowId = await data.createWorkflow('Book orders', userIds)
      const sessionId = newId()
      const runId = await data.createRun(workflowId, { sessionId })
      const delivery = await data.send(sourceId, runId)
      const others = { listSessions: sessionId, listDeliveries: delivery.id, listAllDeliveries: delivery.id }
      Object.assign(ids, { listWorkflows: workflowId, listRuns: runId, ...others })
    }
  })

  test.each(LISTS)('are those that the person sees, regardless of the filters: %s', async (list) => {
    const ids = [seen[list], unseen[list], newId()].join(',')
    const found = async (person: Caller) => {
      const filters = {
        limit: '1',
        status: list.endsWith('Deliveries') ? '404' : 'queued',
        state: 'closed',
        kind: 'verification',
      }
      const { body } = await read(person, list, { ids, ...filters })
      const { data: rows, pagination } = body as { data: { id: string }[]; pagination: object }
      expect(pagination).toEqual({ has_more: false, next_cursor: null })
      return new Set(rows.map(({ id }) => id))
    }
    expect(await found('admin')).toEqual(new Set([seen[list], unseen[list]]))
    expect(await found('member')).toEqual(new Set([seen[list]]))
    expect(await found((await data.app.createOrganization()).owner)).toEqual(new Set())
  })

  test.each(LISTS)('are at most 100 complete ids: %s', async (list) => {
    const many = Array.from({ length: 101 }, newId)
    expect((await read('admin', list, { ids: many.slice(1).join(',') })).status).toBe(200)
    for (const ids of [many.join(','), '', 'ca440bfa', `${seen[list]},`]) {
      expect((await read('admin', list, { ids })).status).toBe(422)
    }
  })

  test('are of the log of their source', async () => {
    const call = { params: { source_id: await data.saveSource() }, query: { ids: seen['listDeliveries'] ?? '' } }
    expect((await data.call('admin', 'listDeliveries', call)).body.data).toEqual([])
  })
})
