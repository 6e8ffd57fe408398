import { describe, expect, test } from '@jest/globals'
import { formatActor } from '@workflow-service/contract'
import { deleteOrganization, deleteOrganizationRows, newId } from '@workflow-service/database'
import { beginTransaction, freePort, startCustomerEndpoint, untilLocked } from '@workflow-service/testkit'
import { checkServiceToken } from '@workflow-service/webhook-token'
import type { OutboundResult } from '../src/outbound/outbound-result.ts'
import {
  callDispatcher,
  type InternalResponse,
  invalidField,
  refusal,
  sourceIn,
  sourcePath,
} from './support/test-dispatcher.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const dispatcher = useDispatcher()

describe('201 and 200', () => {
  test('one verification request is sent, with the body and headers of the contract', async () => {
    const id = newId()
    const secret = 'correct horse battery staple é'
    const example = { order: { id: 'A-1', lines: [{ sku: 'x', amount: 2 }] }, note: null }
    const response = await dispatcher.save(id, {
      endpoint_url: `${dispatcher.endpoint.url}/Hook?a=1#part`,
      signing_secret: secret,
      example_request_body: example,
    })
    expect(response.status).toBe(201)
    expect(dispatcher.endpoint.requests).toHaveLength(1)
    const [request] = dispatcher.endpoint.requests
    expect(request).toMatchObject({ method: 'POST', path: '/Hook?a=1' })
    expect(request?.json).toEqual({
      type: 'service.webhook.verification',
      organization_id: dispatcher.organizationId,
      source_id: id,
      data: { target_url: `${dispatcher.endpoint.url}/Hook?a=1#part`, signing_secret: secret, body_example: example },
    })
    expect(request?.headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': 'workflow-service/1',
      'x-request-id': response.headers.get('x-request-id'),
    })
    expect(await checkServiceToken(request?.headers['x-service-token'], secret)).toMatchObject({ ok: true })
  })

  test('the response and the log have the stored values, without the secret', async () => {
    const id = newId()
    const response = await dispatcher.save(id, {
      name: '  Spaced out\u0085',
      signing_secret: 'a secret of thirty-two characters',
    })
    const example = { order_id: 'A-1', total: 99.5 }
    expect(response.body).toEqual({
      id,
      organization_id: dispatcher.organizationId,
      name: 'Spaced out',
      approval: 'none',
      description: 'Takes orders.',
      endpoint_url: dispatcher.endpoint.url,
      has_signing_secret: true,
      example_request_body: example,
      paused_at: null,
      created_at: expect.any(String),
      updated_at: expect.any(String),
      verified_at: expect.any(String),
      version: 1,
    })
    expect((await dispatcher.readSource(id)).body).toEqual(response.body)
    const data = { target_url: dispatcher.endpoint.url, signing_secret: '[hidden]', body_example: example }
    expect(await dispatcher.readLog(id)).toMatchObject([
      { kind: 'verification', outcome: 'accepted', status: 204, reason: null, source_id: id, request_body: { data } },
    ])
  })

  test('a secret is signed with, kept if it is absent, replaced and removed', async () => {
    const id = newId()
    const save = (change: Record<string, unknown>) => dispatcher.save(id, { name: 'Changing', ...change })
    const saved = [
      await save({}),
      await save({ signing_secret: 'first secret' }),
      await save({ name: 'Renamed' }),
      await save({ signing_secret: 'second secret' }),
      await save({ signing_secret: null }),
    ]
    expect(saved.map(({ body }) => body.has_signing_secret)).toEqual([false, true, true, true, false])
    const secrets = [null, 'first secret', 'first secret', 'second secret', null]
    for (const [index, secret] of secrets.entries()) {
      const { json, headers } = dispatcher.endpoint.requests[index]!
      expect(json).toMatchObject({ source_id: id, data: { signing_secret: secret } })
      const check = secret && (await checkServiceToken(headers['x-service-token'], secret)).ok
      expect(check ?? headers['x-service-token']).toBe(secret === null ? undefined : true)
    }
  })

  test('a repeated save verifies once more and changes nothing, also with the id in upper case', async () => {
    const id = newId()
    const source = { name: 'Repeated', signing_secret: 'again and again' }
    expect((await dispatcher.save(id.toUpperCase(), source)).status).toBe(201)
    expect(await dispatcher.save(id, source)).toMatchObject({
      status: 200,
      body: { id, name: 'Repeated', has_signing_secret: true },
    })
    expect(dispatcher.endpoint.requests).toHaveLength(2)
  })
})

describe('404', () => {
  test('for an unknown organization', async () => {
    expect(await dispatcher.saveIn(newId())).toMatchObject(refusal(404, 'not_found'))
    expect(dispatcher.endpoint.requests).toHaveLength(0)
  })
})

/** Deletes the organization with all its rows. */
async function deleteAll(organizationId: string): Promise<void> {
  const principal = { organizationId, userId: null, name: 'wf', address: null }
  await deleteOrganization(dispatcher.db, { principal, requestId: 'r' })
  while (await deleteOrganizationRows(dispatcher.db)) continue
}

describe('an organization that is deleted', () => {
  test('has no source afterwards that was saved while its endpoint answered', async () => {
    const organizationId = await dispatcher.createOrganization()
    const { promise, resolve } = Promise.withResolvers<{ status: number }>()
    dispatcher.endpoint.answerWith(() => promise)
    const saving = dispatcher.saveIn(organizationId, { signing_secret: 'of the deleted one' })
    await dispatcher.endpoint.waitForRequests(1)
    await deleteAll(organizationId)
    resolve({ status: 204 })
    expect(await saving).toMatchObject(refusal(404, 'not_found'))
    expect(await dispatcher.db.prisma.webhookSource.count({ where: { organizationId } })).toBe(0)
  })

  test('has no source and no look-up afterwards that were saved during its deletion', async () => {
    const { pool } = dispatcher.db
    const organizationId = await dispatcher.createOrganization()
    using deletion = await beginTransaction(pool)
    await deletion.query('UPDATE organizations SET deleted_at = now() WHERE id = $1', [organizationId])
    const tool = { name: 'find', description: 'Finds.', path: '/', parameters: { type: 'object', properties: {} } }
    const lookup = { name: 'Customers', kind: 'http', url: dispatcher.endpoint.url, tools: [tool] }
    const lookupPath = `/internal/organizations/${organizationId}/lookups/${newId()}`
    const saving = Promise.all([dispatcher.saveIn(organizationId), dispatcher.call('PUT', lookupPath, lookup)])
    const waiting = ['INTO webhook_sources', 'SELECT FROM organizations'].map((text) => untilLocked(pool, text))
    await Promise.race([Promise.all(waiting), saving])
    await deletion.query('COMMIT')
    expect(await saving).toMatchObject([refusal(404, 'not_found'), refusal(404, 'not_found')])
  })

  test('gets no verification request for a new source', async () => {
    const organizationId = await dispatcher.createOrganization()
    await deleteAll(organizationId)
    expect(await dispatcher.saveIn(organizationId)).toMatchObject(refusal(404, 'not_found'))
    expect(dispatcher.endpoint.requests).toEqual([])
  })
})

const saveMoving = (id: string, change: Record<string, unknown>, query = ''): Promise<InternalResponse> =>
  dispatcher.save(id, { name: `Moving ${id}`, ...change }, query)

describe('a new address without a secret', () => {
  test.each(['', '?verify=if_changed', '?verify=never'])(
    'is 422 if a secret is stored, and the secret does not travel there: %s',
    async (query) => {
      const id = newId()
      await saveMoving(id, { signing_secret: 'for the first address' })
      await using other = await startCustomerEndpoint()
      const moved = { endpoint_url: other.url }
      expect(await saveMoving(id, moved, query)).toMatchObject(invalidField('signing_secret', 'missing'))
      expect(other.requests).toEqual([])
      expect((await saveMoving(id, { ...moved, signing_secret: 'for the second' })).status).toBe(200)
    },
  )

  test.each([
    ['the scheme', (url: string) => url.replace('http:', 'https:')],
    ['the host', (url: string) => url.replace('127.0.0.1', '127.0.0.2')],
    ['the port', (url: string) => url.replace(/:\d+/, ':1')],
  ])('is one that differs in %s', async (_what, change) => {
    const id = newId()
    await saveMoving(id, { signing_secret: 'for the first address' })
    const response = await saveMoving(id, { endpoint_url: change(dispatcher.endpoint.url) })
    expect(response.body.error.details).toMatchObject([{ field: 'signing_secret', code: 'missing' }])
  })

  test('is not one that differs in its path or in the spelling of its host', async () => {
    const id = newId()
    await saveMoving(id, { signing_secret: 'for this address' })
    const url = `${dispatcher.endpoint.url.replace('http:', 'HTTP:')}/other?a=1`
    expect((await saveMoving(id, { endpoint_url: url })).status).toBe(200)
    expect(dispatcher.endpoint.requests[1]?.json).toMatchObject({ data: { signing_secret: 'for this address' } })
  })
})

describe('verify=if_changed', () => {
  test('sends and writes nothing if the stored source has the same values', async () => {
    const id = newId()
    const source = { name: 'Steady', signing_secret: 'steady secret' }
    const first = await dispatcher.save(id, source, '?verify=if_changed')
    expect(first.status).toBe(201)
    const again = await dispatcher.save(id, source, '?verify=if_changed')
    expect(again).toMatchObject({ status: 200, body: first.body })
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })

  test.each([
    ['the name', { name: 'Steady 2' }],
    ['the secret', { signing_secret: 'another secret' }],
    ['the example', { example_request_body: { order_id: 'A-1', total: 1, more: [] } }],
    ['the URL', { endpoint_url: undefined }],
  ])('verifies if %s differs', async (_what, change) => {
    const id = newId()
    const source = { name: `Steady ${id}`, signing_secret: 'steady secret' }
    await dispatcher.save(id, source)
    const changed = 'endpoint_url' in change ? { endpoint_url: `${dispatcher.endpoint.url}/other` } : change
    expect((await dispatcher.save(id, { ...source, ...changed }, '?verify=if_changed')).status).toBe(200)
    expect(dispatcher.endpoint.requests).toHaveLength(2)
  })

  test('saves a changed approval without a request, also while the endpoint is down, and keeps the verification', async () => {
    const id = newId()
    const source = { name: 'Steady approval', signing_secret: 'steady secret' }
    const { body: stored } = await dispatcher.save(id, source)
    dispatcher.endpoint.answerWith({ status: 500 })
    const change = { ...source, approval: 'always' }
    const changed = await dispatcher.save(id, change, '?verify=if_changed')
    const { verified_at, created_at } = stored
    expect(changed).toMatchObject({ status: 200, body: { approval: 'always', version: 2, verified_at, created_at } })
    expect((await dispatcher.save(id, change, '?verify=if_changed')).body).toEqual(changed.body)
    expect(dispatcher.endpoint.requests).toHaveLength(1)
    const verified = await dispatcher.save(id, { ...source, approval: 'none' })
    expect(verified).toMatchObject(refusal(422, 'verification_failed'))
  })

  test('verifies a source that was never verified', async () => {
    const id = newId()
    const source = { name: 'Unverified yet' }
    await dispatcher.save(id, source, '?verify=never')
    expect((await dispatcher.save(id, source, '?verify=if_changed')).body.verified_at).toEqual(expect.any(String))
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })
})

describe('verify=never', () => {
  test('saves without a request, logs a warning, and marks the source as unverified', async () => {
    const id = newId()
    const response = await dispatcher.save(id, { name: 'From a manifest', signing_secret: 's3cret' }, '?verify=never')
    expect(response).toMatchObject({ status: 201, body: { verified_at: null, has_signing_secret: true } })
    expect(dispatcher.endpoint.requests).toHaveLength(0)
    expect(dispatcher.logLines).toContainEqual(expect.objectContaining({ level: 'warn', source_id: id }))
  })

  test('keeps verified_at if the stored source has the same values', async () => {
    const id = newId()
    const verified = (await dispatcher.save(id, { name: 'Verified' })).body
    expect((await dispatcher.save(id, { name: 'Verified' }, '?verify=never')).body).toEqual(verified)
  })

  test('still refuses a URL that is not public', async () => {
    const response = await dispatcher.save(newId(), { endpoint_url: 'http://10.0.0.1/' }, '?verify=never')
    expect(response.body.error.details).toEqual([expect.objectContaining({ code: 'url_not_public' })])
  })

  test('any other mode is refused', async () => {
    expect(await dispatcher.save(newId(), {}, '?verify=maybe')).toMatchObject(invalidField('verify', 'enum'))
  })
})

const answered = (status: number): OutboundResult => ({
  kind: 'answered',
  status,
  location: null,
  text: null,
  durationMs: 1,
})

/** Whether the endpoint answers the first request of the test. */
const isFirst = (): boolean => dispatcher.endpoint.requests.length === 1

/** Saves a stored and a new source, expects that both fail to verify and change nothing, and returns the error. */
async function verificationError(change: Record<string, unknown>): Promise<Record<string, unknown>> {
  const id = newId()
  const before = (await dispatcher.save(id, { name: `Before ${id}` })).body
  const response = await dispatcher.save(id, { name: `After ${id}`, ...change })
  expect(response).toMatchObject(refusal(422, 'verification_failed'))
  expect((await dispatcher.readSource(id)).body).toEqual(before)
  const fresh = newId()
  expect((await dispatcher.save(fresh, change)).body.error).toMatchObject({ reason: response.body.error.reason })
  expect((await dispatcher.readSource(fresh)).status).toBe(404)
  const [entry] = await dispatcher.readLog(fresh)
  expect(entry).toMatchObject({ kind: 'verification', source_id: fresh })
  return { ...response.body.error, logged: entry?.outcome }
}

describe('422 verification_failed', () => {
  test('a status that is not 2xx', async () => {
    dispatcher.endpoint.answerWith(() => ({ status: isFirst() ? 204 : 401 }))
    expect(await verificationError({})).toMatchObject({
      reason: 'status',
      status: 401,
      message: expect.stringContaining('401'),
      logged: 'rejected',
    })
    expect(dispatcher.endpoint.requests).toHaveLength(3)
  })

  // The guide to rotating a secret depends on it.
  test('a new secret, until the endpoint takes it; the stored one is used until then', async () => {
    const id = newId()
    let taken = 'old secret'
    dispatcher.endpoint.answerWith(async ({ headers }) => {
      const { ok } = await checkServiceToken(headers['x-service-token'], taken)
      return { status: ok ? 204 : 401 }
    })
    const save = (secret: string) => dispatcher.save(id, { name: 'Leaked', signing_secret: secret })
    expect((await save('old secret')).status).toBe(201)
    expect(await save('new secret')).toMatchObject(refusal(422, 'verification_failed'))
    expect((await dispatcher.readSource(id)).body.version).toBe(1)
    taken = 'new secret'
    expect((await save('new secret')).status).toBe(200)
  })

  test('a redirect is not followed; the error has its location', async () => {
    dispatcher.endpoint.answerWith(() => (isFirst() ? {} : { redirect: 'https://elsewhere.example/x', status: 308 }))
    expect(await verificationError({})).toMatchObject({
      reason: 'redirect',
      status: 308,
      location: 'https://elsewhere.example/x',
      message: expect.stringMatching(/^The endpoint answered 308 and points to https:.*; redirects are not followed: /),
      logged: 'rejected',
    })
  })

  test.each<[string, OutboundResult, object]>([
    ['a redirect without a target', answered(307), { reason: 'redirect', status: 307, location: null }],
    ['304, which is no redirect', answered(304), { reason: 'status', status: 304 }],
    [
      'no answer in time',
      { kind: 'timed_out', phase: 'answer', detail: 'it took long', durationMs: 1 },
      {
        reason: 'timed_out',
        message: expect.stringMatching(/^It took long\. It must .* 10 seconds\./),
      },
    ],
  ])('%s', async (_what, result, error) => {
    const stubbed = await dispatcher.startAnother({ sendRequest: () => Promise.resolve(result) })
    const response = await callDispatcher(stubbed.url, 'PUT', dispatcher.sourcePath(newId()), sourceIn({}))
    expect(response).toMatchObject({ status: 422, body: { error: { code: 'verification_failed', ...error } } })
  })

  test('an unused port; the error says why', async () => {
    expect(await verificationError({ endpoint_url: `http://127.0.0.1:${await freePort()}/` })).toMatchObject({
      reason: 'unreachable',
      message: 'The endpoint cannot be reached: the endpoint refuses connections. Nothing was saved.',
      logged: 'unreachable',
    })
  })

  test('a rejection shows what the endpoint answered, without the secret', async () => {
    dispatcher.endpoint.answerWith(({ json }) => ({ status: 400, body: `not valid:\n${JSON.stringify(json)}` }))
    const saved = await dispatcher.save(newId(), { signing_secret: 'echoed-secret' })
    const { error } = saved.body
    expect(error).toMatchObject({
      reason: 'status',
      rejected_answer: expect.stringMatching(/^not valid:\n\{.*\[hidden\]/),
    })
    expect(JSON.stringify(error)).not.toContain('echoed-secret')
    const kept = await dispatcher.db.prisma.delivery.findUnique({ where: { id: String(error.delivery_id) } })
    expect(kept?.rejectedAnswer).toBe(error.rejected_answer)
    // Too short to be recognized in a text.
    const short = await dispatcher.save(newId(), { signing_secret: 'short' })
    expect(short.body.error.reason).toBe('status')
    expect(JSON.stringify(short.body)).not.toMatch(/short|rejected_answer/)
  })

  test('a name that resolves to a private address; only the log of the service has the address', async () => {
    const rebound = await dispatcher.startAnother({
      sendRequest: async () => ({
        kind: 'refused',
        detail: 'the address of hooks.example.com is not publicly reachable',
        internalDetail: 'hooks.example.com: 10.1.2.3 is not a public address',
        durationMs: 1,
      }),
    })
    const id = newId()
    const response = await callDispatcher(rebound.url, 'PUT', dispatcher.sourcePath(id), sourceIn({}))
    expect(response).toMatchObject({
      status: 422,
      body: { error: { code: 'verification_failed', reason: 'url_not_public' } },
    })
    expect(JSON.stringify([response.body, await dispatcher.readLog(id)])).not.toContain('10.1.2.3')
    expect(JSON.stringify(dispatcher.logLines)).toContain('10.1.2.3')
  })
})

describe('422 validation_error', () => {
  test('refuses localhost and loopback by default', async () => {
    const strict = await dispatcher.startAnother({}, { allowedSubnets: { cidrs: [], contains: () => false } })
    for (const host of ['localhost', '127.0.0.1']) {
      const source = sourceIn({ endpoint_url: `http://${host}:${dispatcher.endpoint.port}/` })
      const response = await callDispatcher(strict.url, 'PUT', dispatcher.sourcePath(newId()), source)
      expect(response).toMatchObject(invalidField('endpoint_url', 'url_not_public'))
      expect(response.body.error.message).toMatch(/^endpoint_url: The endpoint must be publicly reachable: /)
    }
    expect(dispatcher.endpoint.requests).toHaveLength(0)
  })

  test("keeps to the quota of webhook sources, also when several are verified at once; an operator's may exceed it", async () => {
    const limited = await dispatcher.startAnother({}, { maxWebhookSources: 2 })
    const organizationId = await dispatcher.createOrganization()
    const save = (actor: Record<string, string>, id = newId()) => {
      const body = sourceIn({ name: id, endpoint_url: dispatcher.endpoint.url })
      return callDispatcher(limited.url, 'PUT', sourcePath(organizationId, id), body, actor)
    }
    const person = await dispatcher.createActor(organizationId)
    const operator = { 'x-actor': formatActor({ user_id: null, name: 'wf', address: null }) }
    const responses = await Promise.all(Array.from({ length: 5 }, () => save(person)))
    const refused = responses.filter(({ status }) => status === 409)
    expect([responses.filter(({ status }) => status === 201).length, refused.length]).toEqual([2, 3])
    expect(refused[0]!.body.error).toMatchObject({
      code: 'quota_exceeded',
      message:
        'There can be at most 2 webhook sources. Delete some that are not needed, or ask the operator to raise MAX_WEBHOOK_SOURCES.',
    })
    dispatcher.endpoint.requests.length = 0
    expect((await save(person)).status).toBe(409)
    expect(dispatcher.endpoint.requests).toEqual([])
    const { status, body } = await save(operator)
    expect(status).toBe(201)
    expect((await save(person, body.id)).status).toBe(200)
  })

  test('refuses an X-Actor that is not valid, before anything is sent', async () => {
    const path = dispatcher.sourcePath(newId())
    const source = sourceIn({ endpoint_url: dispatcher.endpoint.url })
    const response = await dispatcher.call('PUT', path, source, { 'x-actor': '{"name":"Ada"}' })
    expect(response).toMatchObject({ status: 422, body: { error: { details: [{ field: 'X-Actor' }] } } })
    expect(dispatcher.endpoint.requests).toHaveLength(0)
  })

  test('refuses an example that nests too deep, even 100,000 levels', async () => {
    for (const levels of [40, 100_000]) {
      const text = JSON.stringify(sourceIn({ endpoint_url: dispatcher.endpoint.url, example_request_body: {} }))
      const body = text.replace(
        '"example_request_body":{}',
        `"example_request_body":{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`,
      )
      const response = await dispatcher.call('PUT', dispatcher.sourcePath(newId()), body)
      expect(response).toMatchObject(
        invalidField(['example_request_body.a', ...Array<string>(31).fill('0')].join('.'), 'too_deep'),
      )
    }
  })

  test('refuses a number that JavaScript cannot represent exactly', async () => {
    const text = JSON.stringify(sourceIn({ endpoint_url: dispatcher.endpoint.url, example_request_body: { n: 0 } }))
    const body = text.replace('"n":0', '"n":12345678901234567890')
    const response = await dispatcher.call('PUT', dispatcher.sourcePath(newId()), body)
    expect(response).toMatchObject(invalidField('example_request_body', 'inexact_number'))
  })

  test('reports every invalid field at once, in the order of the schema', async () => {
    const response = await dispatcher.save(newId(), {
      name: '   ',
      description: 5,
      endpoint_url: 'nonsense',
      signing_secret: '',
      example_request_body: [],
      extra: 1,
    })
    expect(response).toMatchObject(refusal(422, 'validation_error'))
    expect(response.body.error.details.map(({ field, code }) => [field, code])).toEqual([
      ['name', 'string_too_short'],
      ['description', 'string_type'],
      ['endpoint_url', 'url_parsing'],
      ['signing_secret', 'string_too_short'],
      ['example_request_body', 'dict_type'],
      ['extra', 'extra_forbidden'],
    ])
    expect(dispatcher.endpoint.requests).toHaveLength(0)
  })
})
