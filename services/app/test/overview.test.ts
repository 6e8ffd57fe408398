import { describe, expect, test } from '@jest/globals'
import { newId, rollUpUsage } from '@workflow-service/database'
import { type Caller, keyIn, useDataApp, userIn } from './support/use-app.ts'

// Without the task that rolls up the usage every minute: the tests do.
const data = useDataApp({ hasMaintenance: false })
const HOUR_MS = 3_600_000
const totals = (starts: number, deliveries: number) => ({
  starts: { succeeded: starts },
  deliveries: { accepted: deliveries },
})

/** A closed hour of those that are counted for a request. */
const closedHour = () => new Date(Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 2 * HOUR_MS)

/** Makes the hour the first one that is not rolled up. */
async function rollUpFrom(hour: Date): Promise<void> {
  await data.app.db.pool.query('DELETE FROM usage_rollups')
  await data.app.db.pool.query('INSERT INTO usage_rollups (hour, has_unfinished) VALUES ($1, false)', [
    new Date(hour.getTime() - HOUR_MS),
  ])
}

test('The overview has the first steps, the counts of the last day, and what needs attention', async () => {
  const { pool } = data.app.db
  const organization = await data.app.createOrganization()
  const { id: organizationId, admin } = organization
  const empty = (await data.call(admin, 'getOverview')).body
  const steps = { has_verified_source: false, has_startable_workflow: false, has_api_key: false }
  const later = { has_run: false, has_delivery: false }
  const nothing = { starts: {}, deliveries: {}, waiting_runs: 0, attention: [], budgets: [] }
  expect(empty).toEqual({ steps: { ...steps, ...later }, ...nothing })
  const sourceId = await data.saveSource({ name: 'Orders' }, organization)
  const workflow = await data.createWorkflow('Book orders', null, organizationId)
  await pool.query(
    `INSERT INTO triggers (id, workflow_id, is_active, source_slug, source_name) VALUES ($1, $2, true, 'api', 'API')`,
    [newId(), workflow],
  )
  await data.call(admin, 'createApiKey', { body: keyIn() })
  const failed = await data.createRun(workflow, { status: 'failed', error: 'needs_a_model: No.' })
  await data.createRun(workflow, { createdAt: new Date(Date.now() - 5 * HOUR_MS) })
  const { body: overview } = await data.call(admin, 'getOverview')
  // Programs started the runs, and the delivery is a verification.
  expect(overview.steps).toEqual({ ...Object.fromEntries(Object.keys(steps).map((step) => [step, true])), ...later })
  await pool.query(`UPDATE deliveries SET kind = 'payload' WHERE source_id = $1`, [sourceId])
  await data.createRun(workflow, { userId: admin.userId })
  expect((await data.call(admin, 'getOverview')).body.steps).toMatchObject({ has_run: true, has_delivery: true })
  const count = { count: 1, newest_id: failed }
  expect(overview.attention).toMatchObject([{ kind: 'run_failed', id: workflow, title: 'Book orders', ...count }])
  expect(overview.starts['failed']).toBe(1)
  const waiting = await data.createRun(workflow, { status: 'waiting' })
  const waitingRuns = async () => (await data.call(admin, 'getOverview')).body.waiting_runs
  await data.createApproval(waiting, { expiresAt: new Date(0) })
  expect(await waitingRuns()).toBe(0)
  await data.createApproval(waiting)
  expect(await waitingRuns()).toBe(1)
})

test('The overview groups what failed by source and answer until it is sent again, and hides what a member does not see', async () => {
  const { admin, member } = data.app.organization
  const hidden = await data.createWorkflow('Salaries', [])
  const sourceId = await data.saveSource({ name: 'Attention' })
  data.endpoint.answerWith({ status: 500 })
  // The delivery stands for the failed run.
  const secretRun = await data.createRun(hidden, { status: 'failed' })
  const [plain, secret] = [await data.send(sourceId), await data.send(sourceId, secretRun)]
  const groupsOf = async (person: Caller) => (await data.call(person, 'getOverview')).body.attention
  const resend = async (of: string) =>
    (await data.call(admin, 'resendDelivery', { params: { delivery_id: newId() }, body: { resend_of: of } })).body
  const group = { kind: 'delivery_not_accepted', id: sourceId, title: 'Attention', code: 'rejected', status: 500 }
  expect(await groupsOf(admin)).toEqual([
    {
      ...group,
      count: 2,
      is_more: false,
      newest_id: secret.id,
      at: secret.created_at,
      reason: 'The endpoint answered 500.',
    },
  ])
  expect(await groupsOf(member)).toMatchObject([{ ...group, count: 1, newest_id: plain.id }])
  // Sent again twice, and rejected again: the newest stands for the payload.
  await resend(plain.id)
  const again = await resend(plain.id)
  expect(await groupsOf(member)).toMatchObject([{ count: 1, newest_id: again.id }])
  const listed = await data.call(member, 'listAllDeliveries', {
    query: { source_id: sourceId, needs_attention: 'yes' },
  })
  expect(listed.body.data.map(({ id }) => id)).toEqual([again.id])
  data.endpoint.answerWith({ status: 204 })
  await resend(plain.id)
  expect(await groupsOf(member)).toEqual([])
  expect(await groupsOf(admin)).toMatchObject([{ count: 1, newest_id: secret.id }])
  data.endpoint.answerWith({ status: 500 })
  await data.call(admin, 'testWebhookSource', { params: { source_id: sourceId } })
  const reason = 'The endpoint answered 500.'
  expect(await groupsOf(member)).toMatchObject([{ kind: 'source_not_verified', id: sourceId, reason }])
})

test('The overview has no group that a person has marked as done, as far as that person saw it', async () => {
  const organization = await data.app.createOrganization()
  const { id: organizationId, admin, member } = organization
  const sourceId = await data.saveSource({ name: 'Done' }, organization)
  const secret = await data.createWorkflow('Hidden', [], organizationId)
  const hidden = await data.createRun(secret, { status: 'failed', error: 'no_destination: No.' })
  const workflow = await data.createWorkflow('Seen', null, organizationId)
  const run = await data.createRun(workflow, { status: 'failed', error: 'needs_a_model: No.' })
  await data.createRun(workflow, { status: 'failed', error: 'delivery_rejected: No.' })
  const listed = async (code: string) => {
    const query = { status: 'failed', workflow_id: workflow, needs_attention: code }
    return (await data.call(member, 'listRuns', { query })).body.data.map(({ id }) => id)
  }
  expect([await listed('needs_a_model'), await listed('delivery_rejected')]).toEqual([[run], []])
  for (const runId of [null, null, hidden]) await data.addDelivery(sourceId, { runId, outcome: 'timed_out' })
  const groupsOf = async (person: Caller) => (await data.call(person, 'getOverview')).body.attention
  const done = async (person: Caller, kind: string) => {
    const { id, code, status, at: until } = (await groupsOf(person)).find((group) => group.kind === kind)!
    return (await data.call(person, 'markAttentionDone', { body: { kind, id, code, status, until } })).body
  }
  await data.addDelivery(sourceId, { outcome: 'timed_out', createdAt: new Date(Date.now() + 60_000) })
  const [newest] = (await groupsOf(member)).filter(({ kind }) => kind === 'delivery_not_accepted')
  const key = { kind: 'delivery_not_accepted', id: sourceId, code: 'timed_out', status: 204 }
  expect(newest).toMatchObject({ ...key, count: 3 })
  const seen = { body: { ...key, until: new Date().toISOString() } }
  expect((await data.call(member, 'markAttentionDone', seen)).body).toEqual({ done: 2, is_more: false })
  expect(await groupsOf(member)).toMatchObject([{ newest_id: newest!.newest_id, count: 1 }, { kind: 'run_failed' }])
  const ofRuns = [{ id: workflow, code: 'needs_a_model', count: 1 }, { id: secret }]
  expect(await groupsOf(admin)).toMatchObject([{ count: 2 }, ...ofRuns])
  const ofSecret = { kind: 'run_failed', id: secret, code: 'no_destination', status: null, until: seen.body.until }
  expect((await data.call(member, 'markAttentionDone', { body: ofSecret })).body.done).toBe(0)
  for (const _ of ofRuns) expect(await done(admin, 'run_failed')).toEqual({ done: 1, is_more: false })
  expect(await done(admin, 'delivery_not_accepted')).toEqual({ done: 2, is_more: false })
  expect(await groupsOf(admin)).toEqual([])
  expect(await listed('needs_a_model')).toEqual([])
  // PostgreSQL reads no such time zone, and has neither this year nor such an integer.
  for (const until of ['2026-01-01T00:00:00+23:59', '0000-01-01T00:00:00Z']) {
    expect((await data.call(admin, 'markAttentionDone', { body: { ...key, until } })).body.done).toBe(0)
  }
  const tooLarge = { ...seen.body, status: 2 ** 31 }
  expect((await data.call(admin, 'markAttentionDone', { body: tooLarge })).error.details?.[0]?.field).toBe('status')
  const { rows } = await data.app.db.pool.query(
    `SELECT changes FROM audit_events WHERE organization_id = $1 AND action = 'attention.done' ORDER BY id`,
    [organizationId],
  )
  expect(rows).toHaveLength(4)
  expect(rows[0]!.changes).toEqual([
    { field: 'reason', old: null, new: 'timed_out 204' },
    { field: 'deliveries', old: null, new: 2 },
  ])
})

const hoursAgo = (hours: number) => new Date(Date.now() - hours * HOUR_MS)
/** Fails runs of a workflow, and reads their group. */
const failing = async (error: string) => {
  const { id: organizationId, admin } = await data.app.createOrganization()
  const workflow = await data.createWorkflow('Slow', null, organizationId)
  const query = { workflow_id: workflow, needs_attention: error.split(':')[0]! }
  return {
    admin,
    listed: async () => (await data.call(admin, 'listRuns', { query })).body.data.map(({ id }) => id),
    fail: async (createdAt: Date, notSucceededAt: Date) =>
      await data.createRun(workflow, { status: 'failed', error, createdAt, notSucceededAt }),
    groups: async () => (await data.call(admin, 'getOverview')).body.attention,
  }
}

describe('The overview goes by when a run failed, not by when it was accepted:', () => {
  test('it has one whose payload waited for 7 days, as has the list that its group opens', async () => {
    const { fail, groups, listed } = await failing('approval_expired: No.')
    const expired = await fail(hoursAgo(170), hoursAgo(1))
    await fail(hoursAgo(180), hoursAgo(170))
    expect(await groups()).toMatchObject([{ kind: 'run_failed', count: 1, newest_id: expired }])
    expect(await listed()).toEqual([expired])
  })

  test('none is done that failed after a person looked', async () => {
    const { admin, fail, groups } = await failing('agent_failed: No.')
    await fail(hoursAgo(2), hoursAgo(2))
    const [seen] = await groups()
    const later = await fail(hoursAgo(3), hoursAgo(1))
    const { kind, id, code, status, at: until } = seen!
    const { body } = await data.call(admin, 'markAttentionDone', { body: { kind, id, code, status, until } })
    expect(body).toEqual({ done: 1, is_more: false })
    expect(await groups()).toMatchObject([{ count: 1, newest_id: later }])
  })
})

describe('The usage', () => {
  test('is the same before and after its hours are rolled up, by one process, and again for runs that had not ended', async () => {
    const { pool } = data.app.db
    const organization = await data.app.createOrganization()
    const { id: organizationId, admin } = organization
    const hour = closedHour()
    const at = (seconds: number) => new Date(hour.getTime() + seconds * 1_000)
    const workflow = await data.createWorkflow('Counted', null, organizationId)
    const sourceId = await data.saveSource({}, organization)
    const runs: string[] = []
    for (const [index, status] of (['succeeded', 'succeeded', 'failed', 'running'] as const).entries()) {
      runs.push(await data.createRun(workflow, { status, createdAt: at(index) }))
    }
    await data.addSteps(runs[0]!, [
      'model_answer',
      { model: 'openai:x', input_tokens: 1_000, output_tokens: 20, cost_micros: 1_234 },
    ])
    const lookupId = await data.saveLookup('Customers', organization)
    const lookup = { id: lookupId, name: 'Customers', tool: 'find' }
    for (const [index, call_id] of ['c1', 'c2'].entries()) {
      await data.addSteps(
        runs[index + 1]!,
        ['tool_call', { call_id, tool: 'look_up', lookup }],
        ['tool_result', { call_id, tool: 'look_up', ok: true, text: 'x', lookup: { status: 200, bytes: 700 } }],
      )
    }
    for (const outcome of ['accepted', 'accepted', 'unreachable']) {
      await data.addDelivery(sourceId, { outcome, runId: runs[0]!, createdAt: at(10) })
    }
    const read = async (by: string) => {
      const query = { since: hour.toISOString(), until: at(3_599).toISOString(), by }
      return (await data.call(admin, 'getUsage', { query })).body
    }
    await rollUpFrom(hour)
    await pool.query('DELETE FROM usage_hours')
    const counts = {
      starts: { succeeded: 2, failed: 1, running: 1 },
      deliveries: { accepted: 2, unreachable: 1 },
    }
    const times = { run_ms_p50: 1_002, run_ms_p95: 1_002 }
    const lookups = { lookup_calls: 2, lookup_bytes: 1_400 }
    const counted = {
      bucket: 'hour',
      buckets: [{ at: hour.toISOString(), ...counts }],
      groups: [{ id: workflow, name: 'Counted', ...counts, ...times, tokens: 1_020, cost_micros: 1_234, ...lookups }],
    }
    expect(await read('workflow')).toMatchObject(counted)
    const done = await Promise.all([rollUpUsage(data.app.db), rollUpUsage(data.app.db), rollUpUsage(data.app.db)])
    expect(done.flat().filter((each) => each.getTime() === hour.getTime())).toEqual([hour])
    expect(await read('workflow')).toMatchObject(counted)
    expect((await read('model')).groups).toMatchObject([
      { id: null, name: 'openai:x', starts: { answers: 1 }, tokens: 1_020, cost_micros: 1_234 },
    ])
    expect((await read('webhook_source')).groups).toMatchObject([
      { id: sourceId, deliveries: { accepted: 2 }, starts: {} },
    ])
    const query = { since: hour.toISOString(), by: 'webhook_source' }
    for (const [person, thing_id, deliveries] of [
      [admin, sourceId, counts.deliveries],
      [admin, newId(), {}],
      [organization.member, sourceId, {}],
    ] as const) {
      const ofOne = (await data.call(person, 'getUsage', { query: { ...query, thing_id } })).body.buckets
      expect(ofOne[0]?.deliveries).toEqual(deliveries)
    }
    expect((await read('api_key')).groups).toMatchObject([{ id: null, starts: { succeeded: 2 }, ...lookups }])
    expect((await read('lookup')).groups).toMatchObject([{ id: lookupId, name: 'Customers', starts: {}, ...lookups }])
    expect((await data.call(organization.member, 'getUsage', { query: { by: 'api_key' } })).body.groups).toEqual([])
    await pool.query(`UPDATE starts SET status = 'succeeded', finished_at = now() WHERE id = $1`, [runs[3]])
    await pool.query(`UPDATE usage_rollups SET rolled_up_at = now() - interval '1 hour'`)
    expect(await rollUpUsage(data.app.db)).toContainEqual(hour)
    expect((await read('workflow')).groups[0]?.starts).toEqual({ succeeded: 3, failed: 1 })
    expect(await rollUpUsage(data.app.db)).not.toContainEqual(hour)
  })

  test('and the overview of a member count only the workflows that the member sees, live and rolled up', async () => {
    const organization = await data.app.createOrganization()
    const { id, admin, member } = organization
    const seen = await data.createWorkflow('Seen', [member.userId], id)
    const hidden = await data.createWorkflow('Hidden', [], id)
    const sourceId = await data.saveSource({}, organization)
    const hour = closedHour()
    const runs = [await data.createRun(seen, { createdAt: hour }), await data.createRun(hidden, { createdAt: hour })]
    for (const runId of [null, ...runs]) await data.addDelivery(sourceId, { runId, createdAt: hour })
    const read = async (person: Caller) => {
      const { starts, deliveries } = (await data.call(person, 'getOverview')).body
      const { buckets, groups } = (await data.call(person, 'getUsage', { query: { since: hour.toISOString() } })).body
      const { body: bySource } = await data.call(person, 'getUsage', { query: { by: 'webhook_source' } })
      const names = groups.map(({ name }) => name).toSorted()
      return { starts, deliveries, bucket: buckets[0], names, sources: bySource.groups.length }
    }
    const expectCounts = async () => {
      const ofAdmin = { ...totals(2, 3), names: ['Hidden', 'No workflow', 'Seen'], sources: 1 }
      expect(await read(admin)).toMatchObject({ ...ofAdmin, bucket: totals(2, 3) })
      const ofMember = { ...totals(1, 2), names: ['No workflow', 'Seen'], sources: 0 }
      expect(await read(member)).toMatchObject({ ...ofMember, bucket: totals(1, 2) })
    }
    await rollUpFrom(hour)
    await expectCounts()
    expect(await rollUpUsage(data.app.db)).toContainEqual(hour)
    await expectCounts()
    await data.call(admin, 'deleteWorkflow', { params: { workflow_id: hidden } })
    expect(await read(admin)).toMatchObject({ bucket: totals(2, 3), names: ['Deleted', 'No workflow', 'Seen'] })
    expect((await read(member)).names).toEqual(['No workflow', 'Seen'])
  })

  test('has percentiles that are right to 5 %', async () => {
    const { id, admin } = await data.app.createOrganization()
    const workflow = await data.createWorkflow('Slow and fast', null, id)
    const durations = Array.from({ length: 60 }, (_, index) => Math.round(20 * 1.17 ** index))
    for (const duration of durations) {
      const createdAt = new Date()
      await data.createRun(workflow, { createdAt, finishedAt: new Date(createdAt.getTime() + duration) })
    }
    // Those that have no duration do not count.
    for (let n = 0; n < 20; n += 1) {
      const cancelled = await data.createRun(workflow, { status: 'cancelled' })
      await data.app.db.pool.query('UPDATE starts SET started_at = NULL WHERE id = $1', [cancelled])
    }
    const [group] = (await data.call(admin, 'getUsage')).body.groups
    expect(Math.abs((group?.run_ms_p50 ?? 0) / durations[29]! - 1)).toBeLessThan(0.05)
    expect(Math.abs((group?.run_ms_p95 ?? 0) / durations[56]! - 1)).toBeLessThan(0.05)
  })

  test('of a period of more than 3 days is by day, with the empty ones', async () => {
    await data.createRun(await data.createWorkflow('By day'))
    const { body } = await data.call('admin', 'getUsage')
    expect(body.bucket).toBe('day')
    expect(body.buckets.length).toBe(8)
    const now = Date.now()
    const daysAgo = (days: number) => new Date(now - days * 24 * HOUR_MS).toISOString()
    const ofDays = async (since: number, until: number) =>
      await data.call('admin', 'getUsage', { query: { since: daysAgo(since), until: daysAgo(until) } })
    expect((await ofDays(293, 200)).error.details).toMatchObject([{ field: 'since', code: 'value_error' }])
    expect((await ofDays(292, 200)).body.buckets.length).toBe(93)
    // Until now at the latest.
    expect((await ofDays(91, -7)).body.buckets.length).toBe(92)
    expect(body.buckets.at(-1)?.starts['succeeded']).toBeGreaterThan(0)
  })
})

const found = async (person: Caller, q: string) =>
  (await data.call(person, 'search', { query: { q } })).body.data.map(({ kind, id }) => `${kind} ${id}`)

test('The search finds by name what the person may see', async () => {
  const { admin, member, owner } = data.app.organization
  const workflow = await data.createWorkflow('Žebraß orders')
  const hidden = await data.createWorkflow('Žebrass salaries', [])
  const sourceId = await data.saveSource({ name: 'Žebraß source' })
  const key = keyIn({ name: 'Žebrass key' })
  const user = userIn({ first_name: 'Žebrass', role: 'member' })
  await data.call(admin, 'createUser', { body: user })
  await data.call(admin, 'createApiKey', { body: key })
  const lookupId = await data.saveLookup('Žebraß look-up')
  const seen = [`workflow ${workflow}`, `webhook_source ${sourceId}`, `lookup ${lookupId}`, `user ${user.id}`]
  const all = [...seen, `workflow ${hidden}`, `api_key ${key.id}`]
  expect((await found(admin, ' žEBRASS')).toSorted()).toEqual(all.toSorted())
  expect(await found(member, 'žebrass')).toEqual(seen)
  expect(await found(member, lookupId)).toEqual([`lookup ${lookupId}`])
  expect(await found(member, 'the owner')).toEqual([`user ${owner.userId}`])
  const other = await data.app.createOrganization()
  for (const text of ['žebrass', lookupId]) expect(await found(other.owner, text)).toEqual([])
})

test('The search finds first what begins with the text, also where more contain it than are shown', async () => {
  const { pool } = data.app.db
  const organization = await data.app.createOrganization()
  const { id, admin } = organization
  const names = [...Array.from({ length: 9 }, (_, n) => `Archive of Quokka ${n}`), 'Quokka orders', 'Quokka']
  for (const name of names) {
    await data.createWorkflow(name, null, id)
    await data.saveSource({ name }, organization)
    await data.call(admin, 'createApiKey', { body: keyIn({ name }) })
    await data.saveLookup(`${name} look-up`, organization)
  }
  await pool.query('UPDATE api_keys SET created_at = created_at - interval $$1 hour$$ WHERE name = $1', ['Quokka'])
  // The last one by its address, too.
  for (const first_name of [...Array.from({ length: 9 }, (_, n) => `The Quokka ${n}`), 'Quokka']) {
    await data.call(admin, 'createUser', { body: userIn({ first_name, role: 'member' }) })
  }
  const { body } = await data.call(admin, 'search', { query: { q: 'quokka' } })
  const first = body.data.slice(0, 9).map(({ kind, title }) => `${kind} ${title}`)
  expect(first.toSorted()).toEqual([
    'api_key Quokka',
    'api_key Quokka orders',
    'lookup Quokka look-up',
    'lookup Quokka orders look-up',
    'user Quokka',
    'webhook_source Quokka',
    'webhook_source Quokka orders',
    'workflow Quokka',
    'workflow Quokka orders',
  ])
})

test('The search finds anything by its id, and runs and deliveries by their request', async () => {
  const { admin, member } = data.app.organization
  const other = await data.app.createOrganization()
  const sourceId = await data.saveSource()
  const workflow = await data.createWorkflow('By id')
  const hidden = await data.createWorkflow('Hidden by id', [])
  const [requestId, chosenId, session] = [newId(), 'order-17', newId()]
  const run = await data.createRun(workflow, { requestId, sessionId: session })
  const chosen = await data.createRun(workflow, { requestId: chosenId })
  const secret = await data.createRun(hidden, { requestId })
  const delivery = await data.send(sourceId, run)
  for (const [kind, id] of [
    ['workflow', workflow],
    ['webhook_source', sourceId],
    ['run', run],
    ['session', session],
    ['delivery', delivery.id],
    ['user', admin.userId],
  ] as const) {
    expect(await found(member, ` ${id.toUpperCase()} `)).toEqual([`${kind} ${id}`])
    expect([kind, await found(other.owner, id)]).toEqual([kind, []])
  }
  const key = keyIn()
  await data.call(admin, 'createApiKey', { body: key })
  expect(await found(admin, key.id)).toEqual([`api_key ${key.id}`])
  const unseen = await data.send(sourceId, secret)
  for (const id of [hidden, secret, key.id, unseen.id, unseen.request_id]) {
    expect([id, await found(member, id ?? '')]).toEqual([id, []])
  }
  for (const id of [key.id, requestId, unseen.request_id]) {
    expect([id, await found(other.owner, id ?? '')]).toEqual([id, []])
  }
  expect(await found(member, requestId)).toEqual([`run ${run}`])
  expect((await found(admin, requestId)).toSorted()).toEqual([`run ${run}`, `run ${secret}`].toSorted())
  expect(await found(member, chosenId)).toEqual([`run ${chosen}`])
  expect(await found(member, delivery.request_id ?? '')).toEqual([`delivery ${delivery.id}`])
})
