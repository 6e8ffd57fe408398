import { describe, expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { startCustomerEndpoint } from '@workflow-service/testkit'
import { checkServiceToken } from '@workflow-service/webhook-token'
import { type Answer, sourceIn, sourcePath } from './support/test-dispatcher.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const dispatcher = useDispatcher()

describe('201 and 200', () => {
  test('one verification request is sent, with the body and headers of the contract', async () => {
    const id = newId()
    const secret = 'correct horse battery staple é'
    const example = { order: { id: 'A-1', lines: [{ sku: 'x', amount: 2 }] }, note: null }
    const answer = await dispatcher.save(id, {
      endpoint_url: `${dispatcher.endpoint.url}/Hook?a=1#part`,
      signing_secret: secret,
      example_request_body: example,
    })
    expect(answer.status).toBe(201)
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
      'x-request-id': answer.headers.get('x-request-id'),
    })
    expect(checkServiceToken(request?.headers['x-service-token'], secret)).toMatchObject({ ok: true })
  })

  test('the answer has the stored values, without the secret', async () => {
    const id = newId()
    const answer = await dispatcher.save(id, {
      name: '  Spaced out\u0085',
      signing_secret: 'a secret of thirty-two characters',
    })
    expect(answer.body).toEqual({
      id,
      organization_id: dispatcher.organizationId,
      name: 'Spaced out',
      approval: 'none',
      description: 'Takes orders.',
      endpoint_url: dispatcher.endpoint.url,
      has_signing_secret: true,
      example_request_body: { order_id: 'A-1', total: 99.5 },
      created_at: expect.any(String),
      updated_at: expect.any(String),
      verified_at: expect.any(String),
      version: 1,
    })
    expect((await dispatcher.readSource(id)).body).toEqual(answer.body)
  })

  test('without a secret, the request has null and no token', async () => {
    await dispatcher.save(newId(), { signing_secret: null })
    await dispatcher.save(newId(), {})
    for (const request of dispatcher.endpoint.requests) {
      expect(request.headers).not.toHaveProperty('x-service-token')
      expect(request.json).toMatchObject({ data: { signing_secret: null } })
    }
    expect(dispatcher.endpoint.requests).toHaveLength(2)
  })

  test('an absent secret keeps the stored one, which the verification request carries', async () => {
    const id = newId()
    await dispatcher.save(id, { name: 'Keeper', signing_secret: 'the kept secret' })
    const answer = await dispatcher.save(id, { name: 'Keeper, renamed' })
    expect(answer).toMatchObject({ status: 200, body: { id, name: 'Keeper, renamed', has_signing_secret: true } })
    const [, second] = dispatcher.endpoint.requests
    expect(second?.json).toMatchObject({ source_id: id, data: { signing_secret: 'the kept secret' } })
    expect(checkServiceToken(second?.headers['x-service-token'], 'the kept secret')).toMatchObject({ ok: true })
  })

  test('null removes the secret, a new one replaces it', async () => {
    const id = newId()
    await dispatcher.save(id, { name: 'Changing', signing_secret: 'first secret' })
    expect(
      (await dispatcher.save(id, { name: 'Changing', signing_secret: 'second secret' })).body.has_signing_secret,
    ).toBe(true)
    expect((await dispatcher.save(id, { name: 'Changing', signing_secret: null })).body.has_signing_secret).toBe(false)
    const tokens = dispatcher.endpoint.requests.map((request) => request.headers['x-service-token'])
    expect(checkServiceToken(tokens[1], 'second secret')).toMatchObject({ ok: true })
    expect(tokens[2]).toBeUndefined()
  })

  test('a repeated save verifies once more and changes nothing', async () => {
    const id = newId()
    const source = { name: 'Repeated', signing_secret: 'again and again' }
    expect((await dispatcher.save(id, source)).status).toBe(201)
    expect((await dispatcher.save(id, source)).status).toBe(200)
    expect(dispatcher.endpoint.requests).toHaveLength(2)
    expect((await dispatcher.call('GET', dispatcher.sourcePath(id).replace(`/${id}`, ''))).body.data).toContainEqual(
      expect.objectContaining({ id, name: 'Repeated' }),
    )
  })

  test('an id is the same in upper and lower case', async () => {
    const id = newId()
    await dispatcher.save(id.toUpperCase(), { name: 'Upper' })
    expect((await dispatcher.save(id, { name: 'Lower' })).status).toBe(200)
    expect((await dispatcher.readSource(id.toUpperCase())).body.id).toBe(id)
  })

  test('any 2xx confirms, with any body', async () => {
    for (const answer of [{ status: 200, body: 'not json' }, { status: 202 }, { status: 299 }]) {
      dispatcher.endpoint.answerWith(answer)
      expect((await dispatcher.save(newId(), {})).status).toBe(201)
    }
  })

  test('the verification is logged without the secret', async () => {
    const id = newId()
    await dispatcher.save(id, { signing_secret: 'not to be logged' })
    expect(await dispatcher.readLog(id)).toEqual([
      expect.objectContaining({
        kind: 'verification',
        outcome: 'accepted',
        status: 204,
        reason: null,
        source_id: id,
        request_body: {
          type: 'service.webhook.verification',
          organization_id: dispatcher.organizationId,
          source_id: id,
          data: {
            target_url: dispatcher.endpoint.url,
            signing_secret: '[hidden]',
            body_example: { order_id: 'A-1', total: 99.5 },
          },
        },
      }),
    ])
  })
})

describe('404', () => {
  test('for an unknown organization', async () => {
    const path = sourcePath(newId(), newId())
    const answer = await dispatcher.call('PUT', path, sourceIn({ endpoint_url: dispatcher.endpoint.url }))
    expect(answer).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
    expect(dispatcher.endpoint.requests).toHaveLength(0)
  })
})

const saveMoving = (id: string, change: Record<string, unknown>, query = ''): Promise<Answer> =>
  dispatcher.save(id, { name: `Moving ${id}`, ...change }, query)

describe('a new address without a secret', () => {
  test.each(['', '?verify=if_changed', '?verify=never'])(
    'is 422 if a secret is stored, and the secret does not travel there: %s',
    async (query) => {
      const other = await startCustomerEndpoint()
      const id = newId()
      await saveMoving(id, { signing_secret: 'for the first address' })
      expect(await saveMoving(id, { endpoint_url: other.url }, query)).toMatchObject({
        status: 422,
        body: { error: { code: 'validation_error', details: [{ field: 'signing_secret', code: 'missing' }] } },
      })
      expect(other.requests).toEqual([])
      expect((await saveMoving(id, { endpoint_url: other.url, signing_secret: 'for the second' })).status).toBe(200)
      expect((await saveMoving(id, { signing_secret: null })).status).toBe(200)
      expect((await saveMoving(id, { endpoint_url: other.url })).status).toBe(200)
      await other.close()
    },
  )

  test.each([
    ['the scheme', (url: string) => url.replace('http:', 'https:')],
    ['the host', (url: string) => url.replace('127.0.0.1', '127.0.0.2')],
    ['the port', (url: string) => url.replace(/:\d+/, ':1')],
  ])('is one that differs in %s', async (_what, change) => {
    const id = newId()
    await saveMoving(id, { signing_secret: 'for the first address' })
    const answer = await saveMoving(id, { endpoint_url: change(dispatcher.endpoint.url) })
    expect(answer.body.error.details).toMatchObject([{ field: 'signing_secret', code: 'missing' }])
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
    expect(verified).toMatchObject({ status: 422, body: { error: { code: 'verification_failed' } } })
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
    const answer = await dispatcher.save(id, { name: 'From a manifest', signing_secret: 's3cret' }, '?verify=never')
    expect(answer).toMatchObject({ status: 201, body: { verified_at: null, has_signing_secret: true } })
    expect(dispatcher.endpoint.requests).toHaveLength(0)
    expect(dispatcher.logLines).toContainEqual(expect.objectContaining({ level: 'warn', source_id: id }))
  })

  test('keeps verified_at if the stored source has the same values', async () => {
    const id = newId()
    const verified = (await dispatcher.save(id, { name: 'Verified' })).body
    expect((await dispatcher.save(id, { name: 'Verified' }, '?verify=never')).body).toEqual(verified)
  })

  test('still refuses a URL that is not public', async () => {
    const answer = await dispatcher.save(newId(), { endpoint_url: 'http://10.0.0.1/' }, '?verify=never')
    expect(answer.body.error.details).toEqual([expect.objectContaining({ code: 'url_not_public' })])
  })

  test('any other mode is refused', async () => {
    expect(await dispatcher.save(newId(), {}, '?verify=maybe')).toMatchObject({
      status: 422,
      body: { error: { details: [{ field: 'verify', code: 'enum' }] } },
    })
  })
})
