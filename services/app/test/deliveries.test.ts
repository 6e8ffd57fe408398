import { beforeAll, describe, expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { beginTransaction, hearNotices, untilLocked } from '@workflow-service/testkit'
import { EXAMPLE, sourceIn, useDataApp } from './support/use-app.ts'

const data = useDataApp()
let sourceId: string
let everyones: string
let hidden: string
beforeAll(async () => {
  sourceId = await data.saveSource({ name: 'Orders' })
  everyones = await data.createWorkflow('Book orders')
  hidden = await data.createWorkflow('Salaries', [])
})

const listAll = async (person: 'admin' | 'member', query: Record<string, string | number>) =>
  (await data.call(person, 'listAllDeliveries', { query: { kind: 'payload', ...query } })).body

test('The deliveries of all sources are found by source, status, workflow, resend, word, order number and part of an id, in pages', async () => {
  const [one, other] = [await data.saveSource(), await data.saveSource()]
  const runId = await data.createRun(everyones, { context: 'Straße of NEEDLE-7732' })
  const first = await data.addDelivery(one, { runId, outcome: 'rejected', requestBody: { order: 'NEEDLE-7731' } })
  const second = await data.addDelivery(other, { outcome: 'accepted', requestBody: { order: 'B-2' } })
  const third = await data.addDelivery(one, { outcome: 'accepted', requestBody: { order: 'C-3' }, resendOf: first })
  const found = async (query: Record<string, string | number>) =>
    (await listAll('admin', query)).data.map(({ id }) => id)
  const page = await listAll('admin', { limit: 2 })
  expect(page.data.map(({ id }) => id)).toEqual([third, second])
  expect((await found({ limit: 2, cursor: page.pagination.next_cursor! }))[0]).toBe(first)
  expect(await found({ source_id: other })).toEqual([second])
  expect(await found({ source_id: one, status: 500 })).toEqual([])
  expect(await found({ source_id: one, outcome: 'rejected' })).toEqual([first])
  expect(await found({ source_id: one, workflow_id: everyones })).toEqual([first])
  expect(await found({ source_id: one, sent_again: 'yes' })).toEqual([first])
  expect(await found({ source_id: one, sent_again: 'no' })).toEqual([third])
  expect(await found({ search: 'needle-7731' })).toEqual([first])
  expect(await found({ search: 'Straße of needle' })).toEqual([first])
  expect(await found({ search: second.slice(-8) })).toEqual([second])
  expect(await found({ search: 'NEEDLE-9999' })).toEqual([])
})

test('The log of a source has a page after the other, newest first, filtered, with run, workflow and large bodies left out', async () => {
  const source = await data.saveSource({ example_request_body: { text: '' } })
  const runId = await data.createRun(everyones)
  const ids: string[] = []
  for (const text of ['short', 'x'.repeat(9_000), 'last']) {
    ids.unshift(await data.addDelivery(source, { runId, outcome: 'unreachable', requestBody: { text } }))
  }
  const params = { source_id: source }
  const first = await data.call('admin', 'listDeliveries', { params, query: { limit: 2, kind: 'payload' } })
  expect(first.body.data.map(({ id }) => id)).toEqual(ids.slice(0, 2))
  expect(first.body.data).toMatchObject([
    { request_body: { text: 'last' }, workflow: { id: everyones, name: 'Book orders' }, run_id: runId },
    { request_body: null },
  ])
  const query = { limit: 2, kind: 'payload', cursor: first.body.pagination.next_cursor ?? '' }
  const second = await data.call('admin', 'listDeliveries', { params, query })
  expect(second.body.data.map(({ id }) => id)).toEqual(ids.slice(2))
  expect(second.body.pagination).toEqual({ has_more: false, next_cursor: null })
  const large = await data.call('admin', 'getDelivery', { params: { delivery_id: ids[1] ?? '' } })
  expect(large.body.request_body).toEqual({ text: 'x'.repeat(9_000) })
  const { body } = await data.call('admin', 'listDeliveries', { params, query: { outcome: 'accepted' } })
  expect(body.data.map(({ kind }) => kind)).toEqual(['verification'])
})

test('The log of a source hides the deliveries of workflows that a member does not see', async () => {
  const [seen, unseen] = [await data.createRun(everyones), await data.createRun(hidden)]
  const visible = await data.send(sourceId, seen)
  const secret = await data.send(sourceId, unseen)
  const query = { search: secret.id }
  expect((await listAll('admin', query)).data.map(({ id }) => id)).toEqual([secret.id])
  expect((await listAll('member', query)).data).toEqual([])
  expect((await listAll('member', { ids: secret.id })).data).toEqual([])
  const params = { source_id: sourceId }
  const ofMember = (await data.call('member', 'listDeliveries', { params })).body.data.map(({ id }) => id)
  const ofAdmin = (await data.call('admin', 'listDeliveries', { params })).body.data.map(({ id }) => id)
  expect(ofAdmin.filter((id) => !ofMember.includes(id))).toEqual([secret.id])
  expect(ofMember).toContain(visible.id)
  const get = { params: { delivery_id: secret.id } }
  expect((await data.call('member', 'getDelivery', get)).status).toBe(404)
  expect((await data.call('admin', 'getDelivery', get)).status).toBe(200)
  const resend = { params: { delivery_id: newId() }, body: { resend_of: secret.id } }
  expect((await data.call('member', 'resendDelivery', resend)).status).toBe(404)
})

test('The payload of a workflow that is hidden from the member while a resend waits is not sent again', async () => {
  const { db, organization } = data.app
  const workflowId = await data.createWorkflow('Offers', [organization.member.userId])
  const { id } = await data.send(sourceId, await data.createRun(workflowId))
  data.endpoint.requests.length = 0
  using other = await beginTransaction(db.pool)
  await other.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`resends of ${id}`])
  const params = { delivery_id: newId() }
  const resending = data.call('member', 'resendDelivery', { params, body: { resend_of: id } })
  await untilLocked(db.pool, 'pg_advisory_xact_lock')
  await other.query('DELETE FROM workflow_users WHERE workflow_id = $1', [workflowId])
  await other.query('COMMIT')
  expect((await resending).status).toBe(404)
  expect(data.endpoint.requests).toEqual([])
  expect((await data.call('admin', 'getDelivery', { params })).status).toBe(404)
})

test('The log of a source shows what the agent received, why it sent the payload again, and the headers without the token', async () => {
  const runId = await data.createRun(everyones)
  const delivery = await data.send(sourceId, runId)
  const step = { call_id: 'a', tool: 'send', ok: true, text: 'Accepted with 204.', delivery: { id: delivery.id } }
  const sendAgain = { delivery_id: newId(), reason: 'Repeated orders are ignored.' }
  const call = { call_id: 'a', tool: 'send_again', delivery: { id: delivery.id, send_again: sendAgain } }
  await data.addSteps(runId, ['tool_call', call], ['tool_result', step])
  const { body } = await data.call('admin', 'getDelivery', { params: { delivery_id: delivery.id } })
  const received = { agent_answer: 'Accepted with 204.', send_again: sendAgain }
  expect(body).toMatchObject({ ...received, endpoint_url: data.endpoint.url })
  const [request] = data.endpoint.requests
  const token = String(request?.headers['x-service-token'])
  expect(token.length).toBeGreaterThan(40)
  expect(body.headers).toContainEqual({ name: 'X-Request-Id', value: request?.headers['x-request-id'] })
  expect(body.headers.map(({ name }) => name)).toContain('X-Service-Token')
  expect(JSON.stringify(body)).not.toContain(token)
})

test('A delivery shows what the endpoint answered when it rejected the request; lists and the agent do not have it', async () => {
  data.endpoint.answerWith({ status: 422, body: '<b>no stock</b>\nof it' })
  const sent = await data.send(sourceId, await data.createRun(everyones))
  expect(JSON.stringify(sent)).not.toContain('no stock')
  const { body } = await data.call('admin', 'getDelivery', { params: { delivery_id: sent.id } })
  expect(body).toMatchObject({ outcome: 'rejected', answer: null, rejected_answer: '<b>no stock</b>\nof it' })
  const list = await data.call('admin', 'listDeliveries', { params: { source_id: sourceId } })
  expect(list.body.data[0]?.id).toBe(sent.id)
  expect(JSON.stringify(list.body)).not.toContain('no stock')
})

const urlsOf = async (id: string) => {
  const { body } = await data.call('admin', 'getDelivery', { params: { delivery_id: id } })
  return { request_url: body.request_url, endpoint_url: body.endpoint_url }
}

test('The URL of a request stays what it was when the source gets another one or is deleted, also of a source that was never saved', async () => {
  const params = { source_id: await data.saveSource({ name: 'Moving' }) }
  const { id } = await data.send(params.source_id)
  const old = data.endpoint.url
  const moved = `${old}/moved`
  const body = sourceIn({ name: 'Moving', endpoint_url: moved, version: '1' })
  const saved = await data.call('admin', 'saveWebhookSource', { params, body })
  expect(saved.status).toBe(200)
  expect(await urlsOf(id)).toEqual({ request_url: old, endpoint_url: moved })
  await data.call('admin', 'deleteWebhookSource', { params, query: { version: saved.body.version } })
  expect(await urlsOf(id)).toEqual({ request_url: old, endpoint_url: null })

  data.endpoint.answerWith({ status: 404 })
  const neverSaved = { source_id: newId() }
  await data.call('admin', 'saveWebhookSource', { params: neverSaved, body: sourceIn({ endpoint_url: moved }) })
  data.endpoint.answerWith({ status: 204 })
  const where = { sourceId: neverSaved.source_id }
  const verification = await data.app.db.prisma.delivery.findFirstOrThrow({ where })
  expect(await urlsOf(verification.id)).toEqual({ request_url: moved, endpoint_url: null })
})

const resend = (of: string) => ({ params: { delivery_id: newId() }, body: { resend_of: of } })

test('A resend sends the payload once for its id, is linked both ways, and is in the audit log once', async () => {
  const { member } = data.app.organization
  data.endpoint.answerWith({ status: 500 })
  const first = await data.send(sourceId, await data.createRun(everyones))
  data.endpoint.answerWith({ status: 204 })
  data.endpoint.requests.length = 0
  const call = resend(first.id)
  const responses = await Promise.all([1, 2].map(() => data.call(member, 'resendDelivery', call)))
  responses.push(await data.call(member, 'resendDelivery', call))
  for (const { status, body } of responses) {
    expect(status).toBe(200)
    expect(body).toMatchObject({
      id: call.params.delivery_id,
      outcome: 'accepted',
      resend_of: first.id,
      sent_by: { id: member.userId, name: 'The member' },
      run_id: first.run_id,
      request_body: first.request_body,
    })
  }
  expect(data.endpoint.requests).toHaveLength(1)
  const earlier = await data.call(member, 'getDelivery', { params: { delivery_id: first.id } })
  expect(earlier.body).toMatchObject({ outcome: 'rejected', resent_as: [call.params.delivery_id] })
  const event = { action: 'delivery.resent', actor_id: member.userId }
  expect(await data.app.auditOf(call.params.delivery_id)).toMatchObject([event])
})

test("A resend to a source that asks for approval is an admin's, with an audit event; a member gets a 403 that says so", async () => {
  const { admin, member, id: organizationId } = data.app.organization
  const source = await data.saveSource()
  const first = await data.send(source)
  const settings = { params: { source_id: source }, body: { approval: 'always', version: '1' } }
  expect((await data.call(admin, 'saveWebhookSourceSettings', settings)).status).toBe(200)
  data.endpoint.requests.length = 0
  const shown = await data.call(member, 'getDelivery', { params: { delivery_id: first.id } })
  expect(shown.body.needs_approval).toBe(true)
  const message = expect.stringContaining('asks for approval: only an admin or owner')
  const refused = await data.call(member, 'resendDelivery', resend(first.id))
  expect(refused).toMatchObject({ status: 403, error: { code: 'forbidden_for_role', message } })
  expect(data.endpoint.requests).toEqual([])
  const call = resend(first.id)
  expect((await data.call(admin, 'resendDelivery', call)).body).toMatchObject({ outcome: 'accepted' })
  const { rows } = await data.app.db.pool.query(
    `SELECT action, actor_id FROM audit_events
     WHERE organization_id = $1 AND (target_id = $2 OR action = 'access.refused') ORDER BY id`,
    [organizationId, call.params.delivery_id],
  )
  expect(rows).toEqual([
    { action: 'access.refused', actor_id: member.userId },
    { action: 'delivery.resent', actor_id: admin.userId },
  ])
})

test('The dispatcher notifies of sources that it saved and of requests that it sent', async () => {
  const { id } = data.app.organization
  const heard = hearNotices(data.app.db, id, ['webhook_sources', 'deliveries'], () => data.saveSource())
  await expect(heard).resolves.toBeUndefined()
})

async function waitingRun(change: Parameters<typeof data.createApproval>[1] = {}) {
  const runId = await data.createRun(await data.createWorkflow('Orders'), { status: 'waiting' })
  const deliveryId = await data.createApproval(runId, change)
  return { runId, params: { delivery_id: deliveryId } }
}

describe('a payload that waits for an approval', () => {
  test('is shown to all members with the URL that it goes to, which the audit log has of its approval', async () => {
    const source = await data.saveSource()
    const { runId, params } = await waitingRun({ sourceId: source })
    const { body } = await data.call('member', 'getRun', { params: { run_id: runId } })
    const approval = { ...params, status: 'waiting', payload: EXAMPLE, endpoint_url: data.endpoint.url }
    expect(body).toMatchObject({ status: 'waiting', approvals: [approval] })
    expect((await data.call('member', 'getOverview')).body.waiting_runs).toBeGreaterThan(0)
    const { body: list } = await data.call('member', 'listRuns', { query: { status: 'waiting' } })
    expect(list.data.map(({ id }) => id)).toContain(runId)
    const approved = await data.call('admin', 'approveDelivery', { params, body: {} })
    expect(approved.body.approvals).toMatchObject([{ endpoint_url: null }])
    const [event] = await data.app.auditOf(params.delivery_id)
    expect(event?.changes).toContainEqual({ field: 'endpoint_url', old: null, new: data.endpoint.url })
  })

  test('is declined by an edit of its URL, after which an approval says that it is decided, and by a deletion of its source; the run goes on and says why', async () => {
    const params = { source_id: await data.saveSource() }
    const edited = await waitingRun({ sourceId: params.source_id })
    const { name, version } = (await data.call('admin', 'getWebhookSource', { params })).body
    const body = sourceIn({ name, endpoint_url: `${data.endpoint.url}/new`, version })
    expect((await data.call('admin', 'saveWebhookSource', { params, body })).status).toBe(200)
    const approval = { params: edited.params, body: {} }
    expect((await data.call('admin', 'approveDelivery', approval)).error.code).toBe('not_waiting')
    const deleted = await waitingRun({ sourceId: params.source_id })
    expect((await data.call('admin', 'deleteWebhookSource', { params })).status).toBe(204)
    for (const [{ runId }, reason] of [
      [edited, expect.stringContaining('URL of the webhook source was changed')],
      [deleted, 'The webhook source was deleted before the payload was sent.'],
    ] as const) {
      const run = await data.call('admin', 'getRun', { params: { run_id: runId } })
      const approvals = [{ status: 'declined', reason, decided_by: 'The admin' }]
      expect(run.body).toMatchObject({ status: 'queued', approvals })
    }
    const [saved, removed] = (await data.app.auditOf(params.source_id)).slice(-2)
    const ended = { field: 'approvals_ended', old: null, new: '1' }
    expect(saved).toMatchObject({ action: 'webhook_source.saved', changes: expect.arrayContaining([ended]) })
    expect(removed).toMatchObject({ action: 'webhook_source.deleted', changes: [ended] })
  })

  test('is decided together with others, each as by itself and counted once', async () => {
    const before = (await data.call('member', 'countApprovals')).body.count
    const waiting = [await waitingRun(), await waitingRun()]
    const ids = waiting.map(({ params }) => params.delivery_id)
    expect((await data.call('member', 'countApprovals')).body.count).toBe(before + 2)
    const listed = (await data.call('member', 'listApprovals')).body.data
    expect(listed.slice(-2)).toMatchObject(waiting.map(({ runId }) => ({ run_id: runId, payload: EXAMPLE })))
    await data.call('admin', 'declineDelivery', { params: waiting[0]!.params, body: { reason: null } })
    const repeated = [...ids, ids[1]!, ids[1]!.toUpperCase()]
    const decision = { decision: 'approved', delivery_ids: repeated, reason: null }
    const { body } = await data.call('admin', 'decideApprovals', { body: decision })
    expect(body).toEqual({ decided: 1, not_waiting: 1 })
    expect((await data.app.auditOf(ids[1]!)).map(({ action }) => action)).toEqual(['delivery.approved'])
    expect((await data.call('member', 'countApprovals')).body.count).toBe(before)
  })

  test('is declined with a reason and an audit event, and its run is queued again', async () => {
    const { runId, params } = await waitingRun()
    const { body } = await data.call('admin', 'declineDelivery', { params, body: { reason: ' Wrong total. ' } })
    const approval = { status: 'declined', reason: 'Wrong total.', payload: null, decided_by: expect.any(String) }
    expect(body).toMatchObject({ status: 'queued', approvals: [approval] })
    const [run, reason] = [
      { field: 'run_id', old: null, new: runId },
      { field: 'reason', old: null, new: 'Wrong total.' },
    ]
    const event = { actor_id: data.app.organization.admin.userId, changes: [run, reason] }
    expect(await data.app.auditOf(params.delivery_id)).toMatchObject([event])
  })

  test('is decided by one of two people at once; the other gets a 409', async () => {
    const { params } = await waitingRun()
    const responses = await Promise.all([
      data.call('admin', 'approveDelivery', { params, body: {} }),
      data.call('owner', 'declineDelivery', { params, body: { reason: null } }),
    ])
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200, 409]))
    expect(responses.find(({ status }) => status === 409)?.text).toContain('"not_waiting"')
  })

  test('is not decided by a person who was an admin until the decision waited for a lock', async () => {
    const { runId, params } = await waitingRun()
    const before = await data.app.createPerson(data.app.organization.id, 'admin')
    using other = await beginTransaction(data.app.db.pool)
    await other.query('SELECT FROM sessions WHERE id = (SELECT session_id FROM starts WHERE id = $1) FOR UPDATE', [
      runId,
    ])
    const deciding = data.call(before, 'approveDelivery', { params, body: {} })
    await untilLocked(data.app.db.pool, 'sessions')
    await other.query(`UPDATE users SET role = 'member' WHERE id = $1`, [before.userId])
    await other.query('COMMIT')
    expect((await deciding).error.code).toBe('forbidden_for_role')
    const run = await data.call('admin', 'getRun', { params: { run_id: runId } })
    expect(run.body).toMatchObject({ status: 'waiting', approvals: [{ status: 'waiting' }] })
  })

  test('cannot be decided after it expired', async () => {
    const { params } = await waitingRun({ expiresAt: new Date(0) })
    expect((await data.call('admin', 'approveDelivery', { params, body: {} })).status).toBe(409)
    const unknown = { params: { delivery_id: newId() } }
    expect((await data.call('admin', 'approveDelivery', { ...unknown, body: {} })).status).toBe(404)
  })
})
