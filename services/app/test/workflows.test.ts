import { beforeEach, describe, expect, test } from '@jest/globals'
import type { WorkflowDetailOut } from '@workflow-service/contract'
import {
  findWorkflows,
  newId,
  openSession,
  operatorOf,
  purgeDeletedWorkflows,
  recordModels,
  reserveCost,
  settleCost,
} from '@workflow-service/database'
import { applyManifests, toManifest } from '@workflow-service/database/manifest'
import { beginTransaction, triggerBody, untilLocked } from '@workflow-service/testkit'
import { parse } from 'yaml'
import { type TestOrganization, type TestPerson, useDataApp } from './support/use-app.ts'

const data = useDataApp({ hasMaintenance: false })
const { app } = data
let acme: TestOrganization
let workflow: WorkflowDetailOut
let params: { workflow_id: string }
beforeEach(async () => {
  acme = await app.createOrganization()
  workflow = await create(acme.member)
  params = { workflow_id: workflow.id }
})

const API_TRIGGER = triggerBody()

async function create(who: TestPerson, values: object = {}): Promise<WorkflowDetailOut> {
  const body = { id: newId(), name: 'Forward orders', description: 'Post them.', scope: 'company_wide', ...values }
  const response = await app.call(who, 'createWorkflow', { body })
  expect(response.status).toBe(201)
  return response.body
}

/** Makes it possible to start the workflow. */
async function makeStartable({ id } = workflow, who = acme.owner): Promise<void> {
  await saveTrigger(who, id, newId())
  await app.call(who, 'setWorkflowActive', { params: { workflow_id: id }, body: { is_active: true } })
}

const read = (who: TestPerson, id: string) => app.call(who, 'getWorkflow', { params: { workflow_id: id } })
const save = (who: TestPerson, id: string, body: object) =>
  app.call(who, 'saveWorkflow', { params: { workflow_id: id }, body })
const TRACE = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'vendor=value' }
const start = (who: TestPerson, id: string, body: object = {}) =>
  app.call(who, 'startWorkflow', {
    params: { workflow_id: id },
    body: { id: newId(), context: 'go', session_id: null, ...body },
    headers: TRACE,
  })
const valuesOf = ({ name, description, scope, version }: WorkflowDetailOut) => ({ name, description, scope, version })
const saveTrigger = (who: TestPerson, workflowId: string, triggerId: string, change: object = {}) =>
  app.call(who, 'saveTrigger', {
    params: { workflow_id: workflowId, trigger_id: triggerId },
    body: { ...API_TRIGGER, ...change },
  })
const saveFile = (who: TestPerson, workflowId: string, fileId: string, change: object = {}) =>
  app.call(who, 'saveFile', {
    params: { workflow_id: workflowId, file_id: fileId },
    body: { name: 'prices.md', path: ['docs'], content: 'a', version: null, ...change },
  })

const saveAutoRun = (frequency: string, { auto_run: { version } } = workflow, enabled = true) =>
  app.call(acme.member, 'saveAutoRun', { params, body: { enabled, frequency, version } })
const saveUsers = (userIds: string[], { users_version: version } = workflow) =>
  app.call(acme.owner, 'saveWorkflowUsers', { params, body: { user_ids: userIds, version } })
const makeCopy = (who: TestPerson, id: string) =>
  app.call(who, 'duplicateWorkflow', { params: { workflow_id: id }, body: { id: newId(), name: 'Copy' } })
const startAsScheduled = (who: TestPerson, id: string) =>
  app.call(who, 'startScheduled', { params: { workflow_id: id }, body: { id: newId() } })
const remove = (who: TestPerson, id: string) => app.call(who, 'deleteWorkflow', { params: { workflow_id: id } })
const readiness = async (who: TestPerson, id: string) =>
  (await app.call(who, 'getReadiness', { params: { workflow_id: id } })).body
const withoutIds = (items: readonly { id: string; version: string }[]) =>
  items.map(({ id: _id, version: _version, ...item }) => item)

/** The document that the gateway answers, and its version. */
async function documentOf(workflowId: string) {
  const [found] = await findWorkflows(app.db, [{ organizationId: acme.id, workflowId }])
  const document =
    found && (JSON.parse(`${found.start}${String(found.users?.json ?? '')}${found.end}`) as Record<string, unknown>)
  return document && { ...document, triggers: document['triggers'], version: found?.version }
}

test('a new workflow is inactive and has its creator as a user; a repeated request answers the same', async () => {
  const body = { id: newId(), name: ' Forward orders ', description: 'Post them.', scope: 'only_me' }
  const first = await app.call(acme.member, 'createWorkflow', { body })
  const users = [{ id: acme.member.userId, email: acme.member.email }]
  const autoRun = { enabled: null, frequency: null, next_at: [] }
  const empty = { is_active: false, auto_run: autoRun, users, triggers: [], files: [] }
  expect(first).toMatchObject({ status: 201, body: { id: body.id, name: 'Forward orders', ...empty } })
  expect((await app.call(acme.member, 'createWorkflow', { body })).body).toEqual(first.body)
  expect(await app.auditOf(body.id)).toMatchObject([{ action: 'workflow.created', actor_id: acme.member.userId }])
})

test('a new workflow cannot have the id of another one, in any organization', async () => {
  const other = await app.createOrganization()
  const body = { id: workflow.id, name: 'Another', description: 'Post them.', scope: 'company_wide' }
  for (const who of [acme.member, other.owner]) {
    expect((await app.call(who, 'createWorkflow', { body })).error).toMatchObject({ code: 'id_taken' })
  }
})

const names = async (who: TestPerson, search?: string) =>
  (await app.call(who, 'listWorkflows', { query: { search } })).body.data.map(({ name }) => name)

describe('visibility', () => {
  test('a member lists and finds company-wide workflows and those that list the member', async () => {
    const hidden = await create(acme.owner, { name: 'Hidden', scope: 'only_me' })
    const own = await create(acme.member, { name: 'Own', scope: 'only_me' })
    expect(await names(acme.member)).toEqual([workflow.name, own.name])
    expect(await names(acme.admin)).toEqual([workflow.name, hidden.name, own.name])
    expect(await names(acme.member, 'hidden')).toEqual([])
    expect(await names(acme.member, 'OW')).toEqual([own.name])
  })

  test('the list of people counts for a member only the workflows that the member sees', async () => {
    await create(acme.owner, { scope: 'only_me' })
    await create(acme.owner, { scope: 'company_wide' })
    const counts = async (who: TestPerson) => {
      const users = (await app.call(who, 'listUsers')).body.data
      return [acme.owner, acme.member].map(({ userId }) => users.find(({ id }) => id === userId)?.workflow_count)
    }
    const [all, seen] = [await counts(acme.admin), await counts(acme.member)]
    expect(all[0]).toBe(seen[0]! + 1)
    expect(all[1]).toBe(seen[1])
  })

  test('a member cannot hide a workflow from itself', async () => {
    const shared = await create(acme.owner)
    const hide = (who: TestPerson) => save(who, shared.id, { ...valuesOf(shared), scope: 'only_me' })
    expect((await hide(acme.member)).error.details).toMatchObject([{ field: 'scope' }])
    expect((await hide(acme.owner)).status).toBe(200)
    expect((await read(acme.member, shared.id)).status).toBe(404)
  })

  test.each([
    ['copied', (id: string) => makeCopy(acme.member, id)],
    ['deleted', (id: string) => remove(acme.member, id)],
    ['started', (id: string) => startAsScheduled(acme.member, id)],
  ])('a workflow is not %s by a member who waited while another person took away the access', async (_case, change) => {
    const { id } = await create(acme.member, { scope: 'only_me' })
    using other = await beginTransaction(app.db.pool)
    await other.query('UPDATE workflows SET version = gen_random_uuid(), is_active = true WHERE id = $1', [id])
    await other.query('DELETE FROM workflow_users WHERE workflow_id = $1', [id])
    const changing = change(id)
    await untilLocked(app.db.pool, 'FROM workflows')
    await other.query('COMMIT')
    expect((await changing).error?.code).toBe('not_found')
    expect((await read(acme.owner, id)).status).toBe(200)
  })
})

describe('a save', () => {
  test('shows in the public API at once, with a new version of the document and an audit event', async () => {
    const before = await documentOf(workflow.id)
    const response = await save(acme.member, workflow.id, { ...valuesOf(workflow), name: 'Renamed' })
    expect(response.body).toMatchObject({ name: 'Renamed' })
    const after = await documentOf(workflow.id)
    expect(after).toMatchObject({ name: 'Renamed' })
    expect(after!.version).not.toBe(before!.version)
    expect((await app.auditOf(workflow.id)).at(-1)).toMatchObject({
      action: 'workflow.saved',
      changes: [{ field: 'name', old: 'Forward orders', new: 'Renamed' }],
    })
    const search = await app.call(acme.member, 'listWorkflows', { query: { search: 'RENAMED' } })
    expect(search.body.data).toMatchObject([{ id: workflow.id }])
  })

  test('of an outdated version is refused with the current workflow, unless it changes nothing, and writes nothing', async () => {
    const { body } = await save(acme.owner, workflow.id, { ...valuesOf(workflow), name: 'First' })
    const before = await documentOf(workflow.id)
    const outdated = await save(acme.member, workflow.id, { ...valuesOf(workflow), name: 'Second' })
    expect(outdated.error).toMatchObject({ code: 'changed_meanwhile', current: body })
    const same = await save(acme.member, workflow.id, { ...valuesOf(workflow), name: 'First' })
    expect(same).toMatchObject({ status: 200, body })
    expect(await documentOf(workflow.id)).toEqual(before)
    expect(await app.auditOf(workflow.id)).toHaveLength(2)
  })

  test('does not conflict with saves of other parts, also at the same time', async () => {
    const responses = await Promise.all([
      save(acme.member, workflow.id, { ...valuesOf(workflow), name: 'Renamed' }),
      saveTrigger(acme.owner, workflow.id, newId()),
      saveFile(acme.admin, workflow.id, newId()),
      saveAutoRun('daily'),
      saveUsers([acme.admin.userId]),
    ])
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    expect((await read(acme.owner, workflow.id)).body).toMatchObject({
      name: 'Renamed',
      triggers: [{}],
      files: [{}],
      auto_run: { enabled: true },
      users: [{ id: acme.admin.userId }],
    })
  })

  test('races with another one of the same values: one is written, the other gets the conflict', async () => {
    const [triggerId, fileId] = [newId(), newId()]
    const { body: withTrigger } = await saveTrigger(acme.member, workflow.id, triggerId)
    const { body: withFile } = await saveFile(acme.member, workflow.id, fileId)
    const { version: triggerVersion } = withTrigger.triggers[0]!
    const { version: fileVersion } = withFile.files[0]!
    const races: ((n: number) => Promise<{ status: number }>)[] = [
      (n) => save(acme.member, workflow.id, { ...valuesOf(workflow), name: `Name ${n}` }),
      (n) => saveTrigger(acme.member, workflow.id, triggerId, { name: `T${n}`, version: triggerVersion }),
      (n) => saveFile(acme.member, workflow.id, fileId, { content: `c${n}`, version: fileVersion }),
      (n) => saveAutoRun(n === 0 ? 'daily' : 'weekly'),
      (n) => saveUsers([acme[n === 0 ? 'owner' : 'admin'].userId]),
    ]
    for (const race of races) {
      const responses = await Promise.all([race(0), race(1)])
      expect(responses.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409])
    }
  })
})

test('the schedule counts from the moment when it was switched on, shows the next five times, and keeps them when saved again', async () => {
  const { body } = await saveAutoRun('weekly')
  const times = body.auto_run.next_at.map((time) => new Date(time).getTime())
  expect(times).toHaveLength(5)
  expect(times[1]! - times[0]!).toBe(7 * 86_400_000)
  const { autoRunAnchorAt } = await app.db.prisma.workflow.findUniqueOrThrow({ where: { id: workflow.id } })
  expect(times[0]! - autoRunAnchorAt!.getTime()).toBe(7 * 86_400_000)
  expect((await saveAutoRun('weekly', body)).body).toEqual(body)
  const off = await saveAutoRun('weekly', body, false)
  expect(off.body.auto_run).toMatchObject({ enabled: false, frequency: 'weekly', next_at: [] })
})

test('a schedule has a time in a time zone, which must exist, and is started by hand as it would be', async () => {
  const timing = { time: '08:30', day: 1, time_zone: 'Europe/Berlin' }
  const { version } = workflow.auto_run
  const put = (values: object) =>
    app.call(acme.member, 'saveAutoRun', { params, body: { enabled: true, frequency: 'weekly', version, ...values } })
  const wrong = await put({ timing: { ...timing, day: 9, time_zone: 'Berlin' } })
  expect(wrong.error.details?.map(({ field }) => field)).toEqual(['timing.day', 'timing.time_zone'])
  const { body } = await put({ timing })
  expect(body.auto_run.timing).toEqual(timing)
  for (const at of body.auto_run.next_at) {
    const clock = { weekday: 'short', hour: '2-digit', minute: '2-digit', timeZone: 'Europe/Berlin' } as const
    expect(new Date(at).toLocaleString('en-GB', clock)).toBe('Mon 08:30')
  }
  const exported = (await app.call(acme.owner, 'exportWorkflow', { params })).body.yaml
  expect(parse(exported)).toMatchObject({ workflows: [{ auto_run: { frequency: 'weekly', timing } }] })

  const run = { params, body: { id: newId() } }
  expect((await app.call(acme.member, 'startScheduled', run)).error.code).toBe('workflow_inactive')
  await app.call(acme.owner, 'setWorkflowActive', { params, body: { is_active: true } })
  expect((await app.call(acme.member, 'startScheduled', run)).status).toBe(202)
  // Repeated after its response was lost.
  await app.call(acme.owner, 'setWorkflowActive', { params, body: { is_active: false } })
  expect((await app.call(acme.member, 'startScheduled', run)).status).toBe(202)
  await app.call(acme.owner, 'setWorkflowActive', { params, body: { is_active: true } })
  const started = await app.db.prisma.start.findMany({ where: { workflowId: workflow.id } })
  expect(started).toMatchObject([{ id: run.body.id, origin: 'auto_run', number: 1n }])
  expect(started[0]!.context).toMatch(/^\{"frequency":"weekly","scheduled_for":"\d/)

  // Another start takes the id at the same moment.
  const id = newId()
  using client = await beginTransaction(app.db.pool)
  await client.query(
    `INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id)
     SELECT $1, organization_id, workflow_id, session_id, 2, 'app', context, request_id FROM starts WHERE id = $2`,
    [id, run.body.id],
  )
  const racing = app.call(acme.member, 'startScheduled', { params, body: { id } })
  await untilLocked(app.db.pool, 'INSERT INTO starts')
  await client.query('COMMIT')
  expect((await racing).error.code).toBe('id_taken')
})

test('the audit log has who was added to, and removed from, a long list of people', async () => {
  const { rows } = await app.db.pool.query<{ id: string; email: string }>(
    `INSERT INTO users (id, organization_id, email, first_name, last_name)
     SELECT gen_random_uuid(), $1, 'person-' || n || '@acme.test', '', '' FROM generate_series(1, 150) AS n
     RETURNING id, email`,
    [acme.id],
  )
  const ids = rows.map(({ id }) => id)
  const { body } = await saveUsers(ids)
  expect((await saveUsers([...ids.slice(1), acme.admin.userId], body)).status).toBe(200)
  const [added, changed] = (await app.auditOf(workflow.id)).slice(-2)
  expect(added!.changes).toMatchObject([{ field: 'users', new: rows.map(({ email }) => email).toSorted() }])
  expect(changed!.changes).toEqual([{ field: 'users', old: [rows[0]!.email], new: [acme.admin.email] }])
})

describe('a trigger', () => {
  test('is saved with its events, filters and subagent sources, and keeps their order', async () => {
    const triggerId = newId()
    const change = {
      events: [
        { slug: 'z', name: 'Z' },
        { slug: 'a', name: 'A' },
      ],
      filters: { z: [1, { y: null }], a: 'é' },
      input_message: 'New order',
      subagent_sources: [
        { id: null, name: 'Research', type: 'platform_internal' },
        { id: newId(), name: 'Order intake', type: 'api' },
      ],
    }
    const { body } = await saveTrigger(acme.member, workflow.id, triggerId, change)
    const wanted = { ...change, subagent_sources: change.subagent_sources.toReversed() }
    expect(body.triggers).toMatchObject([{ id: triggerId, ...wanted }])
    expect((await documentOf(workflow.id))?.triggers).toMatchObject([wanted])
    expect(JSON.stringify(body.triggers[0]!.filters)).toBe(JSON.stringify(change.filters))

    const { version } = body.triggers[0]!
    const paused = await saveTrigger(acme.member, workflow.id, triggerId, { ...change, is_active: false, version })
    expect(paused.body.triggers).toMatchObject([{ ...wanted, is_active: false }])
    expect((await app.auditOf(workflow.id)).at(-1)).toMatchObject({
      action: 'trigger.saved',
      changes: [{ field: 'trigger From the API: is_active', old: true, new: false }],
    })
  })

  test('has the beginning of large filters in the audit log, which its members could fill otherwise', async () => {
    const filters = Object.fromEntries(Array.from({ length: 120 }, (_, n) => [`k${n}`, 'é'.repeat(1_000)]))
    const { status } = await saveTrigger(acme.member, workflow.id, newId(), { filters })
    expect(status).toBe(200)
    const { changes } = (await app.auditOf(workflow.id)).at(-1)!
    const shortened = `${JSON.stringify(filters).slice(0, 16_000)}…`
    expect(changes.find(({ field }) => field.endsWith(': filters'))).toMatchObject({ old: null, new: shortened })
  })

  test('has a limit with the others of the workflow, which every read answers; one that is too large can be paused', async () => {
    const filters = { a: 'x'.repeat(250_000) }
    const id = newId()
    const first = await saveTrigger(acme.member, workflow.id, id, { filters })
    for (let n = 0; n < 7; n += 1)
      expect((await saveTrigger(acme.member, workflow.id, newId(), { filters })).status).toBe(200)
    const { error } = await saveTrigger(acme.member, workflow.id, newId(), { filters })
    expect(error).toMatchObject({ code: 'quota_exceeded', message: expect.stringContaining('at most 2048 KiB') })
    // Of a manifest.
    await app.db.pool.query(
      `UPDATE triggers SET filters = json_build_object('a', repeat('x', 500000)) WHERE id <> $1`,
      [id],
    )
    const { version } = first.body.triggers[0]!
    expect((await saveTrigger(acme.member, workflow.id, id, { filters, is_active: false, version })).status).toBe(200)
  })

  test('keeps the text of filters that the save does not change', async () => {
    const triggerId = newId()
    const { body } = await saveTrigger(acme.member, workflow.id, triggerId, { filters: { a: 1 } })
    const text = '{"2": 12345678901234567890, "1": 1.0}'
    await app.db.pool.query('UPDATE triggers SET filters = $2 WHERE id = $1', [triggerId, text])
    const [trigger] = (await read(acme.member, workflow.id)).body.triggers
    const { id: _id, ...values } = trigger!
    expect((await saveTrigger(acme.member, workflow.id, triggerId, { ...values, name: 'Renamed' })).status).toBe(200)
    const { rows } = await app.db.pool.query('SELECT name, filters::text AS filters FROM triggers')
    expect(rows).toContainEqual({ name: 'Renamed', filters: text })
    expect(body.triggers[0]!.version).not.toBe(trigger!.version)
  })

  test.each([
    [{ events: ['a', 'b', 'a'].map((slug) => ({ slug, name: slug })) }, 'events.2.slug'],
    [{ subagent_sources: [{ id: newId(), name: 'R', type: 'platform_internal' }] }, 'subagent_sources.0.id'],
    [{ filters: { a: ['\u0000'] } }, 'filters.a.0'],
    [{ filters: JSON.parse(`${'{"a":'.repeat(40)}1${'}'.repeat(40)}`) as object }, `filters.${'a.'.repeat(31)}a`],
    [{ filters: { a: 'x'.repeat(300_000) } }, 'filters'],
  ])('is refused: %#', async (change, field) => {
    const { error } = await saveTrigger(acme.member, workflow.id, newId(), change)
    expect(error.details).toMatchObject([{ field }])
  })

  test('is deleted in the version that the person saw; a deleted one cannot be saved', async () => {
    const triggerId = newId()
    const { body } = await saveTrigger(acme.member, workflow.id, triggerId)
    const { version } = body.triggers[0]!
    const removeTrigger = (query: { version: string }) =>
      app.call(acme.member, 'deleteTrigger', { params: { ...params, trigger_id: triggerId }, query })
    expect((await removeTrigger({ version: 'x' })).error).toMatchObject({ code: 'changed_meanwhile', current: body })
    const deleted = await removeTrigger({ version })
    expect(deleted.body.triggers).toEqual([])
    const late = await saveTrigger(acme.member, workflow.id, triggerId, { name: 'x', version })
    expect(late.error).toMatchObject({ code: 'changed_meanwhile', current: deleted.body })
  })

  test('cannot take the id of a trigger of another workflow', async () => {
    const two = await create(acme.member, { name: 'Two' })
    const triggerId = newId()
    await saveTrigger(acme.member, workflow.id, triggerId)
    expect((await saveTrigger(acme.member, two.id, triggerId)).error).toMatchObject({ code: 'id_taken' })
  })
})

const RULES = 'deliveries:\n  - to: Big deals\n    when: number(fields.total) > 100.0\n'
const saveRules = (content: string, { id } = workflow) =>
  saveFile(acme.member, id, newId(), { name: 'rules.yaml', path: [], content })

describe('rules', () => {
  test.each([
    ['deliveries: [', /^rules\.yaml, line 1: is no valid YAML/],
    [RULES.replace('Big deals', 'Big deal'), /line 2, delivery 1, to: .* "Big deal"; did you mean "Big deals"\?$/],
  ])('that are wrong are not saved: %j', async (content, message) => {
    await data.saveSource({ name: 'Big deals' }, acme)
    const details = [{ field: 'content', code: 'value_error', message: expect.stringMatching(message) }]
    expect(await saveRules(content)).toMatchObject({ status: 422, error: { details } })
    expect((await read(acme.member, workflow.id)).body.files).toEqual([])
  })

  test('are refused under a similar name', async () => {
    const file = { name: 'rules.yml', path: [], content: RULES }
    const { error } = await saveFile(acme.member, workflow.id, newId(), file)
    expect(error.details).toMatchObject([{ field: 'name', message: expect.stringContaining('"rules.yaml"') }])
  })

  test('are said to be needed where the built-in agent does not read the input message of the trigger', async () => {
    const { id } = await create(acme.member, { description: 'Send it to Big deals.' })
    await data.saveSource({ name: 'Big deals' }, acme)
    const [first, second] = [newId(), newId()]
    await saveTrigger(acme.member, id, first, { input_message: 'New:' })
    await saveTrigger(acme.member, id, second, { input_message: 'Only if it is paid.' })
    expect(await readiness(acme.member, id)).toMatchObject({ warnings: [] })
    const { version } = (await read(acme.member, id)).body.triggers[0]!
    await saveTrigger(acme.member, id, first, { is_active: false, version })
    const warnings = [{ code: 'rules_needed', excerpt: 'Only if it is paid.' }]
    expect(await readiness(acme.member, id)).toMatchObject({ warnings })
    expect((await read(acme.member, id)).body).toMatchObject({ warnings })
  })

  test('take the place of the description in what is shown, until a source that they name is gone', async () => {
    const described = await create(acme.member, { description: 'If it is large, send it to Big deals.' })
    const source = await data.saveSource({ name: 'Big deals' }, acme)
    const warned = (await read(acme.member, described.id)).body.warnings
    expect(warned).toMatchObject([{ code: 'rules_needed', excerpt: expect.stringContaining('If it is large') }])
    expect((await readiness(acme.member, described.id)).warnings).toEqual(warned)
    const draft = await app.call(acme.member, 'draftRules', { params: { workflow_id: described.id } })
    expect(draft.body.content).toMatch(
      /- to: "Big deals"\n {4}when: 'todo\("when .*: If it is large, send it to Big deals/,
    )
    // A model does what the built-in agent refuses.
    const execute = (model: string | null) =>
      app.db.pool.query('UPDATE workflows SET model = $2 WHERE id = $1', [described.id, model])
    await execute('fast')
    expect((await read(acme.member, described.id)).body.warnings).toEqual([])
    expect(await readiness(acme.member, described.id)).toMatchObject({ sources: [{ id: source }], warnings: [] })
    await execute(null)
    expect((await saveRules(RULES, described)).status).toBe(200)
    expect((await read(acme.member, described.id)).body.warnings).toEqual([])
    expect(await readiness(acme.member, described.id)).toMatchObject({ sources: [{ name: 'Big deals' }], warnings: [] })
    const foreign = RULES.replace('- to: Big deals', '- to: Big deals\n    payload: { ordr: "1" }')
    const { id: rulesId, version } = (await read(acme.member, described.id)).body.files[0]!
    const changed = { name: 'rules.yaml', path: [], content: foreign, version }
    expect((await saveFile(acme.member, described.id, rulesId, changed)).status).toBe(200)
    const mismatch = expect.stringMatching(/line 3, .*payload\.ordr: is not in the example; the fields here are "/)
    expect((await read(acme.member, described.id)).body.warnings).toMatchObject([
      { code: 'rules_invalid', message: mismatch },
    ])
    const body = { content: foreign }
    const checked = await app.call(acme.member, 'checkRules', { params: { workflow_id: described.id }, body })
    expect(checked.body.errors).toMatchObject([{ line: 3, message: mismatch }])
    await app.db.pool.query('UPDATE webhook_sources SET deleted_at = now() WHERE id = $1', [source])
    const invalid = [{ code: 'rules_invalid', message: expect.stringContaining('no webhook source "Big deals"') }]
    expect((await read(acme.member, described.id)).body.warnings).toMatchObject(invalid)
    expect(await readiness(acme.member, described.id)).toMatchObject({ sources: [], warnings: invalid })
  })
})

describe('a file', () => {
  test('has a limit of the folders of all, which every read of the workflow answers', async () => {
    const path = Array.from({ length: 50 }, (_, n) => `${n}`.padEnd(255, 'é'))
    const saveOne = (fileId: string) => saveFile(acme.member, workflow.id, fileId, { path: [fileId, ...path.slice(1)] })
    // They wait for each other, on a slow machine for longer than a statement may.
    const saveUntilAnswered: typeof saveOne = async (fileId) => {
      const response = await saveOne(fileId)
      return response.status === 503 ? await saveUntilAnswered(fileId) : response
    }
    const saved = await Promise.all(Array.from({ length: 22 }, () => saveUntilAnswered(newId())))
    expect(saved.filter(({ status }) => status === 200)).toHaveLength(20)
    expect(saved.find(({ status }) => status !== 200)?.error.code).toBe('quota_exceeded')
  })

  test('with the name of a PDF is one, but a text that was stored under such a name can be moved, and renamed as a text', async () => {
    const fileId = newId()
    const saveAgain = (change: object) => saveFile(acme.member, workflow.id, fileId, change)
    const details = [{ field: 'content', message: expect.stringContaining('in base64') }]
    expect(await saveAgain({ name: 'notes.pdf' })).toMatchObject({ status: 422, error: { details } })
    await saveAgain({})
    await app.db.pool.query("UPDATE files SET name = 'notes.pdf' WHERE id = $1", [fileId])
    for (const change of [{ content: 'b' }, { name: 'more.pdf' }]) {
      const refused = await saveAgain({ name: 'notes.pdf', ...change, version: null })
      expect(refused).toMatchObject({ status: 422, error: { details } })
    }
    for (const change of [{ name: 'notes.pdf', path: [] }, { name: 'notes.md' }]) {
      const { version } = (await read(acme.member, workflow.id)).body.files[0]!
      expect(await saveAgain({ ...change, version })).toMatchObject({ status: 200 })
    }
  })

  test('is saved, read and deleted; a conflict has the file with its content', async () => {
    const fileId = newId()
    const call = { params: { ...params, file_id: fileId } }
    const { body } = await saveFile(acme.member, workflow.id, fileId, { content: 'é' })
    expect(body.files).toMatchObject([{ id: fileId, name: 'prices.md', path: ['docs'], size: 2 }])
    const { version } = body.files[0]!
    const file = { id: fileId, name: 'prices.md', path: ['docs'], content: 'é', version }
    expect((await app.call(acme.member, 'getFile', call)).body).toEqual(file)
    expect((await saveFile(acme.member, workflow.id, fileId, { content: 'é' })).body).toEqual(body)
    const early = await saveFile(acme.member, workflow.id, fileId, { content: 'b' })
    expect(early.error).toMatchObject({ code: 'changed_meanwhile', current: file })
    const saved = await saveFile(acme.member, workflow.id, fileId, { content: 'b', version })
    expect(saved.body.files[0]!.version).not.toBe(version)
    const query = { version: saved.body.files[0]!.version }
    const deleted = await app.call(acme.member, 'deleteFile', { ...call, query })
    expect(deleted.body.files).toEqual([])
    expect((await app.call(acme.member, 'getFile', call)).status).toBe(404)
    const late = await saveFile(acme.member, workflow.id, fileId, { content: 'c', version })
    expect(late.error).toMatchObject({ code: 'changed_meanwhile', current: null })
  })

  test('has a place of its own, and at most 1 MiB, or 3 MiB as a PDF', async () => {
    await saveFile(acme.member, workflow.id, newId())
    const same = await saveFile(acme.member, workflow.id, newId(), { content: 'b' })
    expect(same.error.details).toMatchObject([{ field: 'name', code: 'value_error' }])
    const largest = await saveFile(acme.member, workflow.id, newId(), { name: 'big', content: '\n'.repeat(1_048_576) })
    expect(largest.status).toBe(200)
    const larger = await saveFile(acme.member, workflow.id, newId(), { name: 'b2', content: 'é'.repeat(524_289) })
    expect(larger.error.details).toMatchObject([{ field: 'content', code: 'too_large' }])
    const pdf = { name: 'big.pdf', content: Buffer.alloc(3 * 1_048_576, '%PDF-1.7\n').toString('base64') }
    expect((await saveFile(acme.member, workflow.id, newId(), pdf)).status).toBe(200)
    const slashes = await saveFile(acme.member, workflow.id, newId(), { name: 'a/b', path: ['docs', 'c/d'] })
    expect(slashes.error.details).toMatchObject([{ field: 'name' }, { field: 'path.1' }])
  })
})

const saveAgent = async (who: TestPerson, change: object) => {
  const { agent } = (await read(who, workflow.id)).body
  return await app.call(who, 'saveWorkflowAgent', { params, body: { ...agent, ...change } })
}
const offer = async (offered: string[], change: object = {}) => {
  const { name, version } = (await app.call(acme.owner, 'getOrganization')).body
  const body = { name, offered_models: offered, version, ...change }
  return await app.call(acme.owner, 'saveOrganization', { body })
}

describe('model and budgets', () => {
  const NONE = { data_region: null, currency: 'EUR', fallback: null, organization_ids: [], reads: [] }
  beforeEach(() =>
    recordModels(app.db, [
      { ...NONE, name: 'builtin', model: 'builtin', is_default: true },
      { ...NONE, name: 'fast', model: 'openai:fast', is_default: false },
      { ...NONE, name: 'large', model: 'openai:large', is_default: false },
      { ...NONE, name: 'foreign', model: 'openai:x', is_default: false, organization_ids: [newId()] },
    ]),
  )

  test('of a member are a model that admins offer; admins choose any of the organization, and change budgets', async () => {
    await offer(['builtin', 'fast'])
    const list = (await app.call(acme.member, 'listModels')).body.data
    expect(list.map(({ name, is_offered: isOffered }) => [name, isOffered])).toEqual([
      ['builtin', true],
      ['fast', true],
      ['large', false],
    ])
    expect((await saveAgent(acme.member, { model: 'fast' })).body.agent).toMatchObject({
      model: 'fast',
      run_budget: null,
    })
    const refused = await saveAgent(acme.member, { model: 'large' })
    expect(refused).toMatchObject({ status: 422, body: { error: { details: [{ field: 'model' }] } } })
    const budget = await saveAgent(acme.member, { run_budget: 1 })
    expect(budget).toMatchObject({ status: 403, body: { error: { code: 'forbidden_for_role' } } })
    const values = { model: 'large', run_budget: 500_000, day_budget: 2_000_000, when_spent: 'wait' }
    expect((await saveAgent(acme.owner, values)).body.agent).toMatchObject(values)
    expect((await saveAgent(acme.owner, { model: 'foreign' })).status).toBe(422)
    // A member keeps what an admin chose.
    expect((await saveAgent(acme.member, { when_spent: 'wait' })).status).toBe(200)
  })

  test('are saved in the version that the person saw, copied to a duplicate, and in the manifest in the currency', async () => {
    const values = { model: 'fast', run_budget: 500_000, day_budget: 2_250_000, when_spent: 'wait' }
    await saveAgent(acme.owner, values)
    const { agent: outdated } = workflow
    const conflict = await app.call(acme.owner, 'saveWorkflowAgent', { params, body: { ...outdated, run_budget: 1 } })
    expect(conflict).toMatchObject({ status: 409, body: { error: { code: 'changed_meanwhile' } } })
    const copy = await app.call(acme.owner, 'duplicateWorkflow', { params, body: { id: newId(), name: 'Copy' } })
    expect(copy.body.agent).toMatchObject(values)
    const { yaml } = (await app.call(acme.owner, 'exportWorkflow', { params })).body
    const manifest = parse(yaml) as { workflows: object[] }
    expect(manifest.workflows[0]).toMatchObject({
      model: 'fast',
      run_budget: 0.5,
      day_budget: 2.25,
      when_spent: 'wait',
    })
    const [applied] = await applyManifests(app.db, [toManifest(manifest)])
    expect(applied!.workflows[0]!.outcome).toBe('unchanged')
  })

  test('wake the runs that wait for them when they are saved', async () => {
    for (const saveBudget of [
      () => saveAgent(acme.owner, { day_budget: 9_000_000 }),
      () => offer([], { month_budget: 7_000_000 }),
    ]) {
      const [where, later] = [{ id: newId() }, new Date(Date.now() + 600_000)]
      const runId = await data.createRun(workflow.id, { sessionId: where.id, status: 'queued' })
      await data.addSteps(runId, ['note', { code: 'budget_spent', text: '' }])
      await app.db.prisma.session.update({ where, data: { waitingSince: later } })
      expect((await saveBudget()).status).toBe(200)
      const { waitingSince } = await app.db.prisma.session.findUniqueOrThrow({ where })
      expect(waitingSince!.getTime()).toBeLessThan(later.getTime())
    }
  })

  test('of the organization are its budget for a month; what is nearly spent is on the overview of admins', async () => {
    expect((await offer([], { month_budget: 1_000_000 })).body).toMatchObject({
      month_budget: 1_000_000,
      month_spent: 0,
      offered_models: [],
      currency: 'EUR',
    })
    const cost = { organizationId: acme.id, workflowId: workflow.id, runId: newId(), turn: 1 }
    await reserveCost(app.db, { ...cost, amount: 1, runSpent: 0, expiresInMs: 1_000 })
    await settleCost(app.db, { ...cost, cost: 800_000 })
    const budgets = [{ workflow_id: null, name: 'Acme', budget: 1_000_000, spent: 800_000, currency: 'EUR' }]
    expect((await app.call(acme.owner, 'getOverview')).body.budgets).toMatchObject([
      { ...budgets[0], name: expect.any(String) },
    ])
    expect((await app.call(acme.member, 'getOverview')).body.budgets).toEqual([])
    expect((await app.call(acme.owner, 'getOrganization')).body.month_spent).toBe(800_000)
    // Spent on the first day of the month, by a workflow that was deleted since.
    await app.db.pool.query(
      `UPDATE model_spending SET workflow_id = gen_random_uuid(), period = date_trunc('month', now() AT TIME ZONE 'UTC')::date
       WHERE organization_id = $1 AND workflow_id = $2`,
      [acme.id, workflow.id],
    )
    expect((await app.call(acme.owner, 'getOverview')).body.budgets).toHaveLength(1)
  })
})

test('a duplicate has the triggers, files and people under new ids, and is inactive; a repeated request answers the same', async () => {
  const source = await create(acme.owner, { scope: 'only_me' })
  await makeStartable(source)
  await saveFile(acme.owner, source.id, newId())
  await saveTrigger(acme.owner, source.id, newId(), { name: 'Second', events: [{ slug: 'a', name: 'A' }] })
  const original = (await read(acme.owner, source.id)).body
  const body = { id: newId(), name: 'Copy' }
  const duplicate = () => app.call(acme.admin, 'duplicateWorkflow', { params: { workflow_id: source.id }, body })
  const copy = await duplicate()
  expect(copy.status).toBe(201)
  expect(copy.body).toMatchObject({ id: body.id, name: 'Copy', is_active: false, scope: 'only_me' })
  expect(withoutIds(copy.body.triggers)).toEqual(withoutIds(original.triggers))
  expect(withoutIds(copy.body.files)).toEqual(withoutIds(original.files))
  expect(copy.body.users.map(({ id }) => id).toSorted()).toEqual([acme.owner.userId, acme.admin.userId].toSorted())
  expect((await duplicate()).body).toEqual(copy.body)
})

test('an export of what the API accepts, however it is named, is a manifest that changes nothing', async () => {
  const texts = [
    'null',
    '1e3',
    '2026-01-01',
    '- a',
    'a: b',
    '<<',
    '!!int 3',
    'a #b',
    '\u00e9\u2028',
    '\u200ba',
    'a\u0085b',
  ]
  for (const text of texts) {
    const { id } = await create(acme.owner, { name: text, description: `${text}\n\n `, scope: 'only_me' })
    const events = [{ slug: text, name: text }]
    const values = { name: text, trigger_source: events[0], events, input_message: text, filters: { [text]: [text] } }
    expect((await saveTrigger(acme.owner, id, newId(), values)).status).toBe(200)
    const file = { name: text, path: [text], content: `\t${text}` }
    expect((await saveFile(acme.owner, id, newId(), file)).status).toBe(200)
  }
  const { yaml } = (await app.call(acme.owner, 'exportManifest')).body
  const [plan] = await applyManifests(app.db, [toManifest(parse(yaml))], { isDryRun: true })
  expect(plan!.things.filter(({ outcome }) => outcome !== 'unchanged')).toEqual([])
  expect(plan!.workflows).toHaveLength(texts.length + 1)
})

test('an export of more than 10 MiB is refused, and says what to use instead', async () => {
  await app.db.pool.query(
    `INSERT INTO files (id, workflow_id, name, path, content)
     SELECT gen_random_uuid(), $1, 'file ' || n, '{}', repeat('x', 1048576) FROM generate_series(1, 11) n`,
    [workflow.id],
  )
  const one = await app.call(acme.member, 'exportWorkflow', { params })
  const all = await app.call(acme.admin, 'exportManifest')
  const error = { code: 'manifest_too_large', message: expect.stringContaining('wf export') }
  expect([one, all]).toMatchObject([{ error }, { error }])
})

const versions = async () => (await app.call(acme.member, 'listWorkflowVersions', { params })).body.data

describe('a version', () => {
  test('is what each save of the task, a trigger or a file made, also of a manifest; others make none', async () => {
    await save(acme.owner, workflow.id, { ...valuesOf(workflow), description: 'Send them.' })
    await makeStartable()
    const fileId = newId()
    await saveFile(acme.member, workflow.id, fileId)
    await saveAutoRun('daily')
    expect(await versions()).toMatchObject([
      { number: 4, parts: ['files'], saved_by: 'The member' },
      { number: 3, parts: ['triggers'], saved_by: 'The owner' },
      { number: 2, parts: ['description'], saved_by: 'The owner' },
      { number: 1, parts: ['name', 'description', 'triggers', 'files'], saved_by: 'The member' },
    ])
    // A save of 1.0.0, which has no versions, then a manifest.
    await app.db.pool.query(`UPDATE workflows SET name = 'Old release' WHERE id = $1`, [workflow.id])
    const manifest = toManifest({
      organization: { id: acme.id, name: 'Acme' },
      workflows: [{ id: workflow.id, name: 'Applied', description: 'Send them.' }],
    })
    await applyManifests(app.db, [manifest], { overwrite: 'all' })
    expect((await versions()).slice(0, 2)).toMatchObject([
      { number: 6, parts: ['name', 'triggers', 'files'], saved_by: 'operator' },
      { number: 5, parts: ['name'], saved_by: null },
    ])
  })

  test('is compared and restored, with the contents of files, unless a newer one was saved', async () => {
    const [first, second] = [newId(), newId()]
    const triggerId = newId()
    await saveTrigger(acme.owner, workflow.id, triggerId)
    await saveFile(acme.owner, workflow.id, first, { content: 'old' })
    await saveFile(acme.owner, workflow.id, second, { name: 'other.md', content: 'other' })
    const [saved] = await versions()
    const files = async () => (await read(acme.owner, workflow.id)).body.files
    const [{ version } = { version: '' }] = (await files()).filter(({ id }) => id === first)
    const [untouched] = (await files()).filter(({ id }) => id === second)
    await saveFile(acme.owner, workflow.id, first, { content: 'new', version })
    const { triggers } = (await read(acme.owner, workflow.id)).body
    const deleted = { params: { ...params, trigger_id: triggerId }, query: { version: triggers[0]!.version } }
    await app.call(acme.owner, 'deleteTrigger', deleted)
    const at = { params: { ...params, version_id: saved!.id } }
    const compared = await app.call(acme.owner, 'getWorkflowVersion', { ...at, query: { with: 'newest' } })
    expect(compared.body.changes).toContainEqual({ field: 'file prices.md: text', old: 'old', new: 'new' })
    const restore = (newest: number) => app.call(acme.owner, 'restoreWorkflowVersion', { ...at, body: { newest } })
    const stale = await restore(saved!.number)
    expect(stale).toMatchObject({ status: 409, body: { error: { code: 'changed_meanwhile' } } })
    const restored = await restore(saved!.number + 2)
    expect(restored.body.triggers).toEqual(triggers)
    expect(await files()).toContainEqual(untouched)
    const file = { params: { ...params, file_id: first } }
    expect((await app.call(acme.owner, 'getFile', file)).body.content).toBe('old')
    expect((await versions())[0]).toMatchObject({ number: saved!.number + 3, parts: ['triggers', 'files'] })
    // Repeated after a lost response.
    const events = (await app.auditOf(workflow.id)).length
    for (const newest of [2, 3]) expect((await restore(saved!.number + newest)).body).toEqual(restored.body)
    expect(await app.auditOf(workflow.id)).toHaveLength(events)
    await app.db.pool.query('DELETE FROM workflow_version_files WHERE workflow_id = $1', [workflow.id])
    await app.db.pool.query('DELETE FROM files WHERE id = $1', [first])
    expect((await restore(saved!.number + 4)).status).toBe(500)
  })

  test('is restored also when another workflow has got its trigger and its file, as by a manifest: with other ids', async () => {
    const [triggerId, fileId] = [newId(), newId()]
    await saveTrigger(acme.owner, workflow.id, triggerId, { filters: { a: 1 }, input_message: 'Hello' })
    const text = '{"2": 12345678901234567890, "1": 1.0}'
    await app.db.pool.query('UPDATE triggers SET filters = $2 WHERE id = $1', [triggerId, text])
    await saveFile(acme.owner, workflow.id, fileId, { content: 'old' })
    const [saved] = await versions()
    const two = await create(acme.owner, { name: 'Two' })
    await app.db.pool.query('UPDATE triggers SET workflow_id = $2 WHERE id = $1', [triggerId, two.id])
    await app.db.pool.query('UPDATE files SET workflow_id = $2 WHERE id = $1', [fileId, two.id])
    await save(acme.owner, workflow.id, { ...valuesOf(workflow), description: 'Changed.' })
    const [newest] = await versions()
    const at = { params: { ...params, version_id: saved!.id }, body: { newest: newest!.number } }
    const { triggers, files } = (await app.call(acme.owner, 'restoreWorkflowVersion', at)).body
    expect([triggers, files]).toMatchObject([[{ input_message: 'Hello' }], [{ name: 'prices.md' }]])
    const stored = await app.db.pool.query('SELECT filters::text FROM triggers WHERE workflow_id = $1', [workflow.id])
    expect(stored.rows).toEqual([{ filters: text }])
    const kept = (await read(acme.owner, two.id)).body
    expect([kept.triggers, kept.files]).toMatchObject([[{ id: triggerId }], [{ id: fileId }]])
  })

  test('gives back the text of filters, also of numbers that JavaScript rounds', async () => {
    const triggerId = newId()
    await saveTrigger(acme.owner, workflow.id, triggerId, { filters: { a: 1 } })
    const text = '{"2": 12345678901234567890, "1": 1.0}'
    await app.db.pool.query('UPDATE triggers SET filters = $2 WHERE id = $1', [triggerId, text])
    const [trigger] = (await read(acme.owner, workflow.id)).body.triggers
    const { id: _id, ...values } = trigger!
    await saveTrigger(acme.owner, workflow.id, triggerId, { ...values, filters: null })
    const [newest, saved] = await versions()
    const at = { params: { ...params, version_id: saved!.id }, body: { newest: newest!.number } }
    expect((await app.call(acme.owner, 'restoreWorkflowVersion', at)).status).toBe(200)
    const stored = 'SELECT filters::text AS filters FROM triggers WHERE id = $1'
    expect((await app.db.pool.query(stored, [triggerId])).rows).toEqual([{ filters: text }])
  })

  test('gives back the order of its triggers, also of one that was deleted and made again with its id', async () => {
    const [first, second] = [newId(), newId()]
    await saveTrigger(acme.owner, workflow.id, first, { input_message: 'first' })
    await saveTrigger(acme.owner, workflow.id, second, { input_message: 'second' })
    const [saved] = await versions()
    const before = (await read(acme.owner, workflow.id)).body.triggers
    const deleted = { params: { ...params, trigger_id: first }, query: { version: before[0]!.version } }
    await app.call(acme.owner, 'deleteTrigger', deleted)
    await saveTrigger(acme.owner, workflow.id, first, { input_message: 'first' })
    const [newest] = await versions()
    const at = { params: { ...params, version_id: saved!.id }, body: { newest: newest!.number } }
    // The API fires the oldest one.
    expect((await app.call(acme.owner, 'restoreWorkflowVersion', at)).body.triggers).toEqual(before)
    expect((await versions())[0]).toMatchObject({ number: newest!.number + 1, parts: ['triggers'] })
  })

  test('is restored also after a service of 1.0.0 has saved, once the person has seen what that saved', async () => {
    await save(acme.owner, workflow.id, { ...valuesOf(workflow), description: 'Send them.' })
    const [, first] = await versions()
    await app.db.pool.query(`UPDATE workflows SET name = 'Old release' WHERE id = $1`, [workflow.id])
    const restore = async () => {
      const [newest] = await versions()
      const at = { params: { ...params, version_id: first!.id }, body: { newest: newest!.number } }
      return await app.call(acme.owner, 'restoreWorkflowVersion', at)
    }
    expect((await restore()).error).toMatchObject({ code: 'changed_meanwhile' })
    expect((await versions())[0]).toMatchObject({ number: 3, parts: ['name'], saved_by: null })
    expect((await restore()).body).toMatchObject({ name: workflow.name, description: workflow.description })
    expect((await versions()).map(({ number }) => number)).toEqual([4, 3, 2, 1])
  })

  test('is compared by whole texts, of which it has the beginnings', async () => {
    const beginning = 'x'.repeat(100_000)
    const { body } = await saveFile(acme.owner, workflow.id, newId(), { content: `${beginning}1` })
    const { id, version } = body.files[0]!
    await saveFile(acme.owner, workflow.id, id, { content: `${beginning}2`, version })
    const at = { params: { ...params, version_id: (await versions())[0]!.id }, query: { with: 'previous' } }
    const compared = await app.call(acme.owner, 'getWorkflowVersion', at)
    expect(compared.body.changes).toEqual([
      { field: 'file prices.md: text', old: `${beginning}…`, new: `${beginning}…` },
    ])
  })

  test('has the content that a service of 1.0.0 has saved', async () => {
    const fileId = newId()
    await saveFile(acme.member, workflow.id, fileId, { content: 'ours' })
    await app.db.pool.query(`UPDATE files SET content = 'theirs', version = gen_random_uuid() WHERE id = $1`, [fileId])
    await saveTrigger(acme.owner, workflow.id, newId())
    const [, theirs] = await versions()
    expect(theirs).toMatchObject({ parts: ['files'], saved_by: null })
    const at = { params: { ...params, version_id: theirs!.id }, query: { with: 'previous' } }
    const { body } = await app.call(acme.owner, 'getWorkflowVersion', at)
    expect(body.changes).toEqual([{ field: 'file prices.md: text', old: 'ours', new: 'theirs' }])
  })

  test('is deleted when 100 newer ones are there, with the contents that only it had', async () => {
    const fileId = newId()
    const gone = await saveFile(acme.member, workflow.id, fileId, { content: 'gone' })
    const change = { content: 'first', version: gone.body.files[0]!.version }
    const { body } = await saveFile(acme.member, workflow.id, fileId, change)
    await app.db.pool.query(
      `INSERT INTO workflow_versions (workflow_id, number, parts, document, bytes)
       SELECT $1, number, '{}', '{"files": []}', 1 FROM generate_series(4, 101) AS number`,
      [workflow.id],
    )
    await saveFile(acme.member, workflow.id, fileId, { content: 'second', version: body.files[0]!.version })
    const kept = await versions()
    expect(kept).toHaveLength(100)
    expect(kept.at(-1)!.number).toBe(4)
    const contents = await app.db.pool.query(
      'SELECT content FROM workflow_version_files WHERE workflow_id = $1 ORDER BY content',
      [workflow.id],
    )
    expect(contents.rows).toEqual([{ content: 'first' }, { content: 'second' }])
  })
})

test('the versions of many workflows of an organization are kept in less space for each', async () => {
  const fileId = newId()
  const saveText = async (n: number, { body }: { body?: WorkflowDetailOut } = {}) =>
    await saveFile(acme.member, workflow.id, fileId, {
      content: String(n).repeat(500_000),
      version: body?.files[0]?.version ?? null,
    })
  let saved = await saveText(1)
  for (const n of [2, 3]) saved = await saveText(n, saved)
  expect((await versions()).map(({ number }) => number)).toEqual([4, 3, 2, 1])
  await app.db.pool.query(
    `INSERT INTO workflows (id, organization_id, name, description, scope, search_text, is_active)
     SELECT gen_random_uuid(), $1, 'one of many', '', 'company_wide', '', false FROM generate_series(1, 200)`,
    [acme.id],
  )
  await saveText(4, saved)
  expect((await versions()).map(({ number }) => number)).toEqual([5, 4])
})

test('a deletion hides the workflow at once; its runs are deleted in batches, then the workflow', async () => {
  await makeStartable()
  for (let n = 0; n < 25; n += 1) await data.createRun(workflow.id)
  const other = await create(acme.member)
  await data.createRun(other.id)
  expect((await remove(acme.member, workflow.id)).status).toBe(204)
  expect((await read(acme.owner, workflow.id)).status).toBe(404)
  expect((await start(acme.owner, workflow.id)).status).toBe(404)
  expect(await documentOf(workflow.id)).toBeNull()
  for (const who of [acme.owner, acme.member]) {
    expect((await app.call(who, 'listWorkflows')).body.data.map(({ id }) => id)).toEqual([other.id])
  }
  expect((await app.auditOf(workflow.id)).at(-1)).toMatchObject({ action: 'workflow.deleted' })
  const batches: number[] = []
  while (batches.at(-1) !== 0) batches.push(await purgeDeletedWorkflows(app.db, 10))
  expect(Math.max(...batches)).toBeLessThanOrEqual(11)
  expect(await app.db.prisma.workflow.count({ where: { organizationId: acme.id } })).toBe(1)
  expect((await app.call(acme.owner, 'listWorkflows')).body.data[0]!.last_run).not.toBeNull()
  expect((await create(acme.member, { id: workflow.id })).id).toBe(workflow.id)
})

test('a deletion is refused while a run has not ended, and lets a run end that was accepted at the same time', async () => {
  await makeStartable()
  await start(acme.member, workflow.id)
  expect((await remove(acme.member, workflow.id)).error).toMatchObject({ code: 'workflow_busy' })
  const other = await create(acme.member)
  await remove(acme.member, other.id)
  await data.createRun(other.id, { status: 'queued' })
  expect(await purgeDeletedWorkflows(app.db, 10)).toBe(0)
})

test('readiness has the rules of a start in their order, and a start gets the first that is not met', async () => {
  await save(acme.owner, workflow.id, { ...valuesOf(workflow), scope: 'only_me' })
  await saveUsers([])
  const codes = ['workflow_inactive', 'no_active_api_trigger', 'no_users_with_access'] as const
  const fixes = [
    () => app.call(acme.owner, 'setWorkflowActive', { params, body: { is_active: true } }),
    () => saveTrigger(acme.owner, workflow.id, newId()),
    async () => saveUsers([acme.owner.userId.toUpperCase()], (await read(acme.owner, workflow.id)).body),
  ]
  for (const [index, fix] of fixes.entries()) {
    expect(await readiness(acme.owner, workflow.id)).toMatchObject({
      can_start: false,
      checks: codes.map((code, position) => ({ code, is_met: position < index })),
    })
    expect((await start(acme.owner, workflow.id)).error).toMatchObject({ code: codes[index] })
    await fix()
  }
  expect(await readiness(acme.owner, workflow.id)).toMatchObject({ can_start: true })
  expect((await start(acme.owner, workflow.id)).status).toBe(202)
})

test('readiness names the webhook sources of the description, and quoted names that no source has', async () => {
  for (const name of ['Order intake', 'CRM', 'Unused']) await data.saveSource({ name }, acme)
  const where = { organizationId: acme.id, name: { not: 'CRM' } }
  await app.db.prisma.webhookSource.updateMany({ where, data: { verifiedAt: null } })
  const description = 'Post to the crm, then to "Order intake" and "Shipping".'
  const described = await create(acme.owner, { description })
  expect(await readiness(acme.owner, described.id)).toMatchObject({
    sources: [
      { name: 'CRM', is_verified: true },
      { name: 'Order intake', is_verified: false },
    ],
    unknown_names: ['Shipping'],
  })
})

describe('a start', () => {
  test('is recorded once with the person and the trace, and published, also for several requests at once; another body is refused', async () => {
    await makeStartable()
    const published = app.published.length
    const id = newId()
    const responses = await Promise.all([1, 2, 3].map(() => start(acme.member, workflow.id, { id, context: ' go ' })))
    const response = await start(acme.member, workflow.id, { id })
    expect(response).toMatchObject({ status: 202, body: { run_id: id } })
    for (const each of responses) expect(each.body).toEqual(response.body)
    expect(app.published.slice(published)).toEqual([{ session_id: response.body.session_id }])
    for (const other of [{ context: 'other' }, { session_id: response.body.session_id, context: 'x' }]) {
      expect((await start(acme.member, workflow.id, { id, ...other })).error).toMatchObject({ code: 'id_taken' })
    }
    const recorded = { origin: 'app', userId: acme.member.userId, apiKeyId: null, context: 'go', number: 1n, ...TRACE }
    expect(await app.db.prisma.start.findUnique({ where: { id } })).toMatchObject(recorded)
    expect((await app.auditOf(workflow.id)).at(-1)).toMatchObject({ action: 'workflow.started' })
    const list = await app.call(acme.member, 'listWorkflows')
    expect(list.body.data).toMatchObject([{ trigger_count: 1, last_run: { id, status: 'queued', error: null } }])
  })

  test('continues an open session, numbered in the order of the commits, by the rules of the public API', async () => {
    await makeStartable()
    const session = newId()
    await openSession(app.db, session, operatorOf(acme.id))
    const again = () => start(acme.member, workflow.id, { session_id: session })
    const responses = await Promise.all([1, 2, 3, 4, 5].map(again))
    expect(responses.map(({ status }) => status)).toEqual([202, 202, 202, 202, 202])
    const starts = await app.db.prisma.start.findMany({ where: { sessionId: session }, orderBy: { number: 'asc' } })
    expect(starts.map(({ number }) => number)).toEqual([1n, 2n, 3n, 4n, 5n])
    const unknown = await start(acme.member, workflow.id, { session_id: newId() })
    expect(unknown.error.details).toMatchObject([{ field: 'session_id', code: 'not_found' }])
    await app.db.pool.query('UPDATE sessions SET is_open = false, closed_at = now() WHERE id = $1', [session])
    expect((await again()).error).toMatchObject({ code: 'session_closed' })
  })

  test('of a member continues no session that has a run of a workflow that the member cannot see', async () => {
    await makeStartable()
    const secret = await create(acme.owner, { scope: 'only_me' })
    await makeStartable(secret)
    const session = newId()
    await openSession(app.db, session, operatorOf(acme.id))
    expect((await start(acme.owner, secret.id, { session_id: session })).status).toBe(202)
    const refused = await start(acme.member, workflow.id, { session_id: session })
    expect(refused.error.details).toMatchObject([{ field: 'session_id', code: 'not_found' }])
    expect((await start(acme.owner, workflow.id, { session_id: session })).status).toBe(202)
    // Agents read its runs until they are deleted.
    await app.db.pool.query('UPDATE workflows SET deleted_at = now() WHERE id = $1', [secret.id])
    expect((await start(acme.member, workflow.id, { session_id: session })).status).toBe(422)
  })

  test('of a suspended organization is refused', async () => {
    await makeStartable()
    await app.db.pool.query('UPDATE organizations SET is_suspended = true WHERE id = $1', [acme.id])
    expect((await start(acme.member, workflow.id)).error).toMatchObject({ code: 'organization_suspended' })
  })
})
