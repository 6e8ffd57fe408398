import { describe, expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { startFailingProxy } from '@workflow-service/testkit/start-failing-proxy'
import { lookupIn, sourceIn, useDataApp } from './support/use-app.ts'

const data = useDataApp()

describe('A webhook source', () => {
  test('is verified and saved, read back without its secret, tested, and deleted, each with an audit event', async () => {
    const params = { source_id: newId() }
    const secret = 'the secret that must stay unreadable'
    const body = sourceIn({ name: 'Orders', endpoint_url: data.endpoint.url, signing_secret: secret })
    const saved = await data.call('admin', 'saveWebhookSource', { params, body })
    expect(saved).toMatchObject({ status: 200, body: { name: 'Orders', version: '1', has_signing_secret: true } })
    expect(saved.body.last_verification).toMatchObject({ outcome: 'accepted' })
    // JavaScript would send 9007199254740992.
    const inexact = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON('9007199254740993')
    const other = { params: { source_id: newId() }, body: { ...body, example_request_body: { id: inexact } } }
    const details = [{ field: 'example_request_body', code: 'inexact_number' }]
    expect(await data.call('admin', 'saveWebhookSource', other)).toMatchObject({ status: 422, error: { details } })
    expect(data.endpoint.requests).toHaveLength(1)
    expect((await data.call('member', 'getWebhookSource', { params })).body).toEqual(saved.body)
    const { state: _state, description: _description, example_request_body: _example, ...listed } = saved.body
    expect((await data.call('member', 'listWebhookSources')).body.data).toContainEqual(listed)
    data.endpoint.answerWith({ status: 500 })
    const { body: tested } = await data.call('admin', 'testWebhookSource', { params })
    expect(tested).toMatchObject({ outcome: 'rejected', status: 500 })
    data.endpoint.answerWith({ status: 204 })
    const change = { ...body, signing_secret: undefined, description: 'Takes more.', version: '1' }
    expect((await data.call('admin', 'saveWebhookSource', { params, body: change })).body).toMatchObject({
      version: '2',
    })
    expect((await data.call('admin', 'deleteWebhookSource', { params })).status).toBe(204)
    expect((await data.call('member', 'getWebhookSource', { params })).status).toBe(404)
    const rows = await data.app.auditOf(params.source_id)
    const fields = ['name', 'description', 'endpoint_url', 'example_request_body', 'approval', 'signing_secret']
    expect(rows.map(({ action, changes }) => [action, changes.map(({ field }) => field)])).toEqual([
      ['webhook_source.saved', fields],
      ['webhook_source.tested', ['delivery_id']],
      ['webhook_source.saved', ['description']],
      ['webhook_source.deleted', []],
    ])
    expect(JSON.stringify(rows)).not.toContain(secret)
  })

  test('lists the workflows that name it, in their rules or else in their task, with a model in both, which the person sees', async () => {
    const sourceId = await data.saveSource({ name: 'Paint shop' })
    await data.saveSource({ name: 'Paint shop 2' })
    const { owner } = data.app.organization
    const create = async (name: string, description: string, rules?: string, users: string[] | null = null) => {
      const id = await data.createWorkflow(name, users)
      await data.app.db.pool.query('UPDATE workflows SET description = $2 WHERE id = $1', [id, description])
      if (rules) {
        const params = { workflow_id: id, file_id: newId() }
        const file = { name: 'rules.yaml', path: [], content: rules, version: null }
        await data.call('owner', 'saveFile', { params, body: file })
      }
      return id
    }
    const byTask = await create('A task', 'Send it to paint\n  shop.')
    const byRules = await create('B rules', 'Send it.', 'deliveries: [{ to: Paint shop }]')
    await create('C other', 'Send it to Paint shop 2.')
    await create('D rules', 'Send it to Paint shop.', 'deliveries: [{ to: Paint shop 2 }]')
    const byModel = [
      await create('D1 task', 'Send it to Paint shop.', 'deliveries: [{ to: Paint shop 2 }]'),
      await create('D2 rules', 'Send it to Paint shop 2.', 'deliveries: [{ to: Paint shop }]'),
    ]
    await data.app.db.pool.query(`UPDATE workflows SET model = 'fast' WHERE id = ANY ($1)`, [byModel])
    const hidden = await create('E hidden', 'Send it to Paint shop.', undefined, [owner.userId])
    // More than are read, with the words of the name elsewhere.
    await data.app.db.pool.query(
      `INSERT INTO workflows (id, organization_id, name, description, scope, search_text, is_active)
       SELECT gen_random_uuid(), organization_id, '0', 'Send paint to the shop.', scope, '', true
       FROM workflows, generate_series(1, 100) WHERE id = $1`,
      [hidden],
    )
    const list = async (who: 'owner' | 'member') =>
      (await data.call(who, 'listSourceWorkflows', { params: { source_id: sourceId } })).body.data.map(({ id }) => id)
    expect(await list('owner')).toEqual([byTask, byRules, ...byModel, hidden])
    expect(await list('member')).toEqual([byTask, byRules, ...byModel])
    const ready = await data.call('member', 'getReadiness', { params: { workflow_id: byModel[0]! } })
    expect(ready.body.sources.map(({ name }) => name)).toEqual(['Paint shop', 'Paint shop 2'])
  })

  test("'s approval, and nothing else, is saved without a request while its endpoint is down and the dispatcher is unavailable, audited once", async () => {
    const { admin } = data.app.organization
    const params = { source_id: await data.saveSource() }
    data.endpoint.answerWith({ status: 500 })
    // This application has no dispatcher.
    const call = { params, url: data.app.url }
    const { body: before } = await data.call(admin, 'getWebhookSource', { params })
    const body = { approval: 'always', version: before.version }
    const saved = await data.app.call(admin, 'saveWebhookSourceSettings', { ...call, body })
    expect(saved).toMatchObject({
      status: 200,
      body: { ...before, approval: 'always', version: '2', updated_at: expect.any(String) },
    })
    expect((await data.app.call(admin, 'saveWebhookSourceSettings', { ...call, body })).body).toEqual(saved.body)
    const stale = await data.app.call(admin, 'saveWebhookSourceSettings', {
      ...call,
      body: { ...body, approval: 'none' },
    })
    expect(stale).toMatchObject({ status: 409, error: { code: 'changed_meanwhile', current: saved.body } })
    const others = await data.app.call(admin, 'saveWebhookSource', { ...call, body: sourceIn({ version: '2' }) })
    const message = expect.stringContaining('dispatcher')
    expect(others).toMatchObject({ status: 503, error: { code: 'service_unavailable', message } })
    expect((await data.app.call(admin, 'getWebhookSource', call)).body).toEqual(saved.body)
    expect(data.endpoint.requests).toEqual([])
    const changes = [{ field: 'approval', old: 'none', new: 'always' }]
    const events = (await data.app.auditOf(params.source_id)).slice(1)
    expect(events).toMatchObject([{ action: 'webhook_source.saved', actor_id: admin.userId, changes }])
  })

  test('that failed 50 times in a row over 10 minutes says so, and is paused and resumed by an admin, with audit events', async () => {
    const sourceId = await data.saveSource()
    const params = { source_id: sourceId }
    const read = async () => (await data.call('member', 'getWebhookSource', { params })).body
    expect(await read()).toMatchObject({ paused_at: null, state: { waiting_runs: 0, failing: null } })
    const fail = async (count: number, minutesAgo: number) => {
      const createdAt = new Date(Date.now() - minutesAgo * 60_000)
      for (let n = 0; n < count; n += 1) await data.addDelivery(sourceId, { outcome: 'rejected', createdAt })
    }
    await fail(49, 0)
    expect((await read()).state?.failing).toBeNull()
    await fail(10, 9)
    expect((await read()).state?.failing).toBeNull()
    await fail(1, 11)
    expect((await read()).state?.failing).toMatchObject({ count: 60 })
    const paused = await data.call('admin', 'pauseWebhookSource', { params })
    expect(paused.body).toMatchObject({ paused_at: expect.any(String), paused_by: 'The admin' })
    await data.call('admin', 'pauseWebhookSource', { params })
    const failed = await data.addDelivery(sourceId, { outcome: 'rejected' })
    const resend = { params: { delivery_id: newId() }, body: { resend_of: failed } }
    expect((await data.call('admin', 'resendDelivery', resend)).error?.code).toBe('source_paused')
    expect((await data.call('admin', 'resumeWebhookSource', { params })).body.paused_at).toBeNull()
    expect((await data.call('admin', 'resendDelivery', resend)).body.outcome).toBe('accepted')
    expect((await read()).state?.failing).toBeNull()
    const events = (await data.app.auditOf(sourceId)).map(({ action, actor_name: name }) => `${action} ${name}`)
    expect(events.slice(1)).toEqual(['webhook_source.paused The admin', 'webhook_source.resumed The admin'])
  })

  test.each([
    ['got another role', `UPDATE users SET role = 'member' WHERE id = $1`],
    ['was deactivated', 'UPDATE users SET deactivated_at = now() WHERE id = $1'],
    ['was removed', 'DELETE FROM users WHERE id = $1'],
  ])('is not saved by an admin who %s while its endpoint answered', async (_case, endRole) => {
    const { admin, owner } = await data.app.createOrganization()
    const params = { source_id: newId() }
    const { promise, resolve } = Promise.withResolvers<{ status: number }>()
    data.endpoint.answerWith(() => promise)
    const body = sourceIn({ endpoint_url: data.endpoint.url })
    const saving = data.call(admin, 'saveWebhookSource', { params, body })
    await data.endpoint.waitForRequests(1)
    await data.app.db.pool.query(endRole, [admin.userId])
    resolve({ status: 204 })
    expect((await saving).error.code).toBe('forbidden_for_role')
    expect((await data.call(owner, 'getWebhookSource', { params })).status).toBe(404)
    expect(await data.app.auditOf(params.source_id)).toEqual([])
  })

  test('that another person changed is not overwritten: the response has the current source, and nothing is sent', async () => {
    const id = await data.saveSource({ name: 'Shared', description: 'first' })
    const params = { source_id: id }
    const body = sourceIn({ name: 'Shared', endpoint_url: data.endpoint.url, description: 'second', version: '1' })
    const second = await data.call('admin', 'saveWebhookSource', { params, body })
    data.endpoint.requests.length = 0
    for (const version of ['1', null, 'nonsense']) {
      const change = { ...body, description: 'third', version }
      const { error } = await data.call('admin', 'saveWebhookSource', { params, body: change })
      expect(error).toMatchObject({ code: 'changed_meanwhile', current: second.body })
    }
    expect(data.endpoint.requests).toEqual([])
  })

  test('and a resend are in the audit log once, also when the connection breaks after the dispatcher has done it', async () => {
    const { admin } = data.app.organization
    const first = await data.addDelivery(await data.saveSource({ name: 'Orders again' }))
    const resend = { params: { delivery_id: newId() }, body: { resend_of: first } }
    await using proxy = await startFailingProxy(data.dispatcherUrl, 'lose')
    const broken = await data.app.startAnother({ dispatcherUrl: proxy.url })
    const params = { source_id: newId() }
    const call = { params, url: broken.url }
    const body = sourceIn({ endpoint_url: data.endpoint.url })
    for (const id of ['saveWebhookSource', 'testWebhookSource', 'deleteWebhookSource'] as const) {
      const { status } = await data.app.call(admin, id, { ...call, body: id.startsWith('save') ? body : undefined })
      expect([id, status]).toEqual([id, 503])
    }
    expect((await data.app.call(admin, 'resendDelivery', { ...resend, url: broken.url })).status).toBe(503)
    expect((await data.call(admin, 'resendDelivery', resend)).body.outcome).toBe('accepted')
    const by = { actor_name: 'The admin', actor_id: admin.userId }
    const events = ['saved', 'tested', 'deleted'].map((verb) => ({ action: `webhook_source.${verb}`, ...by }))
    expect(await data.app.auditOf(params.source_id)).toMatchObject(events)
    const changes = [{ field: 'resend_of', old: null, new: first }]
    const resent = { action: 'delivery.resent', target_name: 'Orders again', changes, ...by }
    expect(await data.app.auditOf(resend.params.delivery_id)).toMatchObject([resent])
  })

  test('of an organization send 60 tests and verifications a minute that are not confirmed, with its look-ups and notices', async () => {
    const [{ admin, owner }, other] = [await data.app.createOrganization(), await data.app.createOrganization()]
    const save = async (person: typeof admin, endpointUrl = data.endpoint.url) => {
      const call = { params: { source_id: newId() }, body: sourceIn({ endpoint_url: endpointUrl }) }
      const { status } = await data.call(person, 'saveWebhookSource', call)
      return { status, params: call.params }
    }
    const { params } = await save(admin)
    for (let n = 1; n < 60; n += 1) expect((await save(admin)).status).toBe(200)
    await data.call(admin, 'saveNoticeWebhook', { body: { url: data.endpoint.url, signing_secret: null, events: [] } })
    const read = lookupIn({ url: data.endpoint.url })
    const lookup = { params: { lookup_id: newId() }, body: read }
    expect((await data.call(admin, 'saveLookup', lookup)).status).toBe(200)
    for (let n = 0; n < 2; n += 1) expect((await data.call(admin, 'testNoticeWebhook')).status).toBe(200)
    data.endpoint.answerWith({ status: 500 })
    for (let n = 2; n < 60; n += 2) {
      const [saved, tested] = await Promise.all([
        save(owner, data.endpoint.url.replace('127.0.0.1', `127.0.0.${n}`)),
        data.call(admin, 'testWebhookSource', { params }),
      ])
      expect([saved.status, tested.status]).toEqual([422, 200])
    }
    const sent = data.endpoint.requests.length
    const lookupTest = { ...lookup, body: { tool: 'find', arguments: {} } }
    const mcp = { params: { lookup_id: newId() }, body: { ...read, kind: 'mcp' } }
    const refused = [
      await data.call(admin, 'saveWebhookSource', { params: { source_id: newId() }, body: sourceIn() }),
      await data.call(owner, 'testWebhookSource', { params }),
      await data.call(owner, 'testNoticeWebhook'),
      await data.call(admin, 'testLookup', lookupTest),
      await data.call(admin, 'saveLookup', mcp),
    ]
    expect(refused.map(({ status, error }) => [status, error.code])).toEqual(refused.map(() => [429, 'rate_limited']))
    const seconds = Number(refused[0]!.headers.get('Retry-After'))
    expect(seconds).toBeGreaterThan(0)
    expect(refused[0]!.error.message).toMatch(
      new RegExp(`60 tests, and saves .* Try again in ${seconds} second${seconds === 1 ? '' : 's'}\\.$`),
    )
    expect(data.endpoint.requests).toHaveLength(sent)
    // Nothing is sent for these.
    const another = { params: { lookup_id: newId() }, body: { ...read, name: 'Orders' } }
    expect((await data.call(admin, 'saveLookup', another)).status).toBe(200)
    data.endpoint.reset()
    expect((await save(other.admin)).status).toBe(200)
  })
})
