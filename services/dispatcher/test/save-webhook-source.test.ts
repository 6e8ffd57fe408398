import { describe, expect, test } from '@jest/globals'
import type { DeliveryOut } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { createCertificate, freePort, startCustomerEndpoint, startRawEndpoint } from '@workflow-service/testkit'
import { checkServiceToken } from '@workflow-service/webhook-token'
import { type Answer, callDispatcher, sourceIn, sourcePath } from './support/test-dispatcher.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const dispatcher = useDispatcher()

const save = (sourceId: string, change: Record<string, unknown>, query = ''): Promise<Answer> =>
  dispatcher.call(
    'PUT',
    `${dispatcher.sourcePath(sourceId)}${query}`,
    sourceIn({ endpoint_url: dispatcher.endpoint.url, ...change }),
  )
const read = (sourceId: string): Promise<Answer> => dispatcher.call('GET', dispatcher.sourcePath(sourceId))
const logOf = async (sourceId: string): Promise<DeliveryOut[]> =>
  (await dispatcher.call('GET', `${dispatcher.sourcePath(sourceId)}/deliveries`)).body.data

/** Returns field and code of each error of a save that is refused before a request is sent. */
const validationErrors = async (change: Record<string, unknown>): Promise<[string, string][]> => {
  const answer = await save(newId(), change)
  expect(answer).toMatchObject({ status: 422, body: { error: { code: 'validation_error' } } })
  expect(dispatcher.endpoint.requests).toHaveLength(0)
  return answer.body.error.details.map(({ field, code }) => [field, code])
}

/** Saves a stored and a new source, expects that both fail to verify and change nothing, and returns the error. */
const verificationError = async (change: Record<string, unknown>): Promise<Record<string, unknown>> => {
  const id = newId()
  const before = (await save(id, { name: `Before ${id}` })).body
  const answer = await save(id, { name: `After ${id}`, ...change })
  expect(answer).toMatchObject({ status: 422, body: { error: { code: 'verification_failed' } } })
  expect((await read(id)).body).toEqual(before)
  const fresh = newId()
  expect((await save(fresh, change)).body.error).toMatchObject({ reason: answer.body.error.reason })
  expect((await read(fresh)).status).toBe(404)
  const [entry] = await logOf(fresh)
  expect(entry).toMatchObject({ kind: 'verification', source_id: fresh })
  return { ...answer.body.error, logged: entry?.outcome }
}

describe('201 and 200', () => {
  test('one verification request is sent, with the body and headers of the contract', async () => {
    const id = newId()
    const secret = 'correct horse battery staple é'
    const example = { order: { id: 'A-1', lines: [{ sku: 'x', amount: 2 }] }, note: null }
    const answer = await save(id, {
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
    const answer = await save(id, { name: '  Spaced out\u0085', signing_secret: 'a secret of thirty-two characters' })
    expect(answer.body).toEqual({
      id,
      organization_id: dispatcher.organizationId,
      name: 'Spaced out',
      description: 'Takes orders.',
      endpoint_url: dispatcher.endpoint.url,
      has_signing_secret: true,
      example_request_body: { order_id: 'A-1', total: 99.5 },
      created_at: expect.any(String),
      updated_at: expect.any(String),
      verified_at: expect.any(String),
    })
    expect((await read(id)).body).toEqual(answer.body)
  })

  test('without a secret, the request has null and no token', async () => {
    await save(newId(), { signing_secret: null })
    await save(newId(), {})
    for (const request of dispatcher.endpoint.requests) {
      expect(request.headers).not.toHaveProperty('x-service-token')
      expect(request.json).toMatchObject({ data: { signing_secret: null } })
    }
    expect(dispatcher.endpoint.requests).toHaveLength(2)
  })

  test('an absent secret keeps the stored one, which the verification request carries', async () => {
    const id = newId()
    await save(id, { name: 'Keeper', signing_secret: 'the kept secret' })
    const answer = await save(id, { name: 'Keeper, renamed' })
    expect(answer).toMatchObject({ status: 200, body: { id, name: 'Keeper, renamed', has_signing_secret: true } })
    const [, second] = dispatcher.endpoint.requests
    expect(second?.json).toMatchObject({ source_id: id, data: { signing_secret: 'the kept secret' } })
    expect(checkServiceToken(second?.headers['x-service-token'], 'the kept secret')).toMatchObject({ ok: true })
  })

  test('null removes the secret, a new one replaces it', async () => {
    const id = newId()
    await save(id, { name: 'Changing', signing_secret: 'first secret' })
    expect((await save(id, { name: 'Changing', signing_secret: 'second secret' })).body.has_signing_secret).toBe(true)
    expect((await save(id, { name: 'Changing', signing_secret: null })).body.has_signing_secret).toBe(false)
    const tokens = dispatcher.endpoint.requests.map((request) => request.headers['x-service-token'])
    expect(checkServiceToken(tokens[1], 'second secret')).toMatchObject({ ok: true })
    expect(tokens[2]).toBeUndefined()
  })

  test('a repeated save verifies once more and changes nothing', async () => {
    const id = newId()
    const source = { name: 'Repeated', signing_secret: 'again and again' }
    expect((await save(id, source)).status).toBe(201)
    expect((await save(id, source)).status).toBe(200)
    expect(dispatcher.endpoint.requests).toHaveLength(2)
    expect((await dispatcher.call('GET', dispatcher.sourcePath(id).replace(`/${id}`, ''))).body.data).toContainEqual(
      expect.objectContaining({ id, name: 'Repeated' }),
    )
  })

  test('an id is the same in upper and lower case', async () => {
    const id = newId()
    await save(id.toUpperCase(), { name: 'Upper' })
    expect((await save(id, { name: 'Lower' })).status).toBe(200)
    expect((await read(id.toUpperCase())).body.id).toBe(id)
  })

  test('any 2xx confirms, with any body', async () => {
    for (const answer of [{ status: 200, body: 'not json' }, { status: 202 }, { status: 299 }]) {
      dispatcher.endpoint.answerWith(answer)
      expect((await save(newId(), {})).status).toBe(201)
    }
  })

  test('the verification is logged without the secret', async () => {
    const id = newId()
    await save(id, { signing_secret: 'not to be logged' })
    expect(await logOf(id)).toEqual([
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

describe('422 validation_error', () => {
  test.each([
    ['no scheme', 'hooks.example.com', 'url_parsing'],
    ['another scheme', 'ftp://hooks.example.com/', 'url_scheme'],
    ['2,001 characters', `https://hooks.example.com/${'a'.repeat(1_975)}`, 'string_too_long'],
    ['an empty text', '', 'string_too_short'],
    ['a private address', 'http://10.0.0.1/', 'url_not_public'],
    ['the metadata address', 'http://169.254.169.254/latest', 'url_not_public'],
    ['user info', 'https://a:b@hooks.example.com/', 'url_parsing'],
  ])('refuses an endpoint URL with %s', async (_what, url, code) => {
    expect(await validationErrors({ endpoint_url: url })).toEqual([['endpoint_url', code]])
  })

  test('refuses localhost and loopback by default', async () => {
    const strict = await dispatcher.startAnother({}, { allowedSubnets: { cidrs: [], contains: () => false } })
    for (const host of ['localhost', '127.0.0.1', '[::1]', '0x7f.1']) {
      const source = sourceIn({ endpoint_url: `http://${host}:${dispatcher.endpoint.port}/` })
      const answer = await callDispatcher(strict.url, 'PUT', dispatcher.sourcePath(newId()), source)
      expect(answer).toMatchObject({
        status: 422,
        body: { error: { details: [{ field: 'endpoint_url', code: 'url_not_public' }] } },
      })
    }
    expect(dispatcher.endpoint.requests).toHaveLength(0)
  })

  test.each([
    ['a list', [1], 'dict_type'],
    ['a text', 'text', 'dict_type'],
    ['null', null, 'dict_type'],
  ])('refuses %s as the example', async (_what, example, code) => {
    expect(await validationErrors({ example_request_body: example })).toEqual([['example_request_body', code]])
  })

  test('refuses the type of a verification request in the example', async () => {
    const example = { type: 'service.webhook.verification', id: 1 }
    expect(await validationErrors({ example_request_body: example })).toEqual([
      ['example_request_body.type', 'reserved_value'],
    ])
  })

  test('accepts that type deeper in the example', async () => {
    const example = { event: { type: 'service.webhook.verification' } }
    expect((await save(newId(), { example_request_body: example })).status).toBe(201)
  })

  test('refuses an example that is too large', async () => {
    const example = { text: 'x'.repeat(256 * 1024) }
    expect(await validationErrors({ example_request_body: example })).toEqual([['example_request_body', 'too_large']])
  })

  test('refuses an example that nests too deep, even 100,000 levels', async () => {
    for (const levels of [40, 100_000]) {
      const text = JSON.stringify(sourceIn({ endpoint_url: dispatcher.endpoint.url, example_request_body: {} }))
      const body = text.replace(
        '"example_request_body":{}',
        `"example_request_body":{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`,
      )
      const answer = await dispatcher.call('PUT', dispatcher.sourcePath(newId()), body)
      expect(answer).toMatchObject({ status: 422, body: { error: { details: [{ code: 'too_deep' }] } } })
    }
  })

  test.each(['12345678901234567890', '1e-400', '0.12345678901234567890'])(
    'refuses the number %s, which JavaScript cannot represent exactly',
    async (number) => {
      const text = JSON.stringify(sourceIn({ endpoint_url: dispatcher.endpoint.url, example_request_body: { n: 0 } }))
      const answer = await dispatcher.call(
        'PUT',
        dispatcher.sourcePath(newId()),
        text.replace('"n":0', `"n":${number}`),
      )
      expect(answer).toMatchObject({
        status: 422,
        body: { error: { details: [{ field: 'example_request_body', code: 'inexact_number' }] } },
      })
    },
  )

  test('reports every invalid field at once, in the order of the schema', async () => {
    expect(
      await validationErrors({
        name: '   ',
        description: 5,
        endpoint_url: 'nonsense',
        signing_secret: '',
        example_request_body: [],
        extra: 1,
      }),
    ).toEqual([
      ['name', 'string_too_short'],
      ['description', 'string_type'],
      ['endpoint_url', 'url_parsing'],
      ['signing_secret', 'string_too_short'],
      ['example_request_body', 'dict_type'],
      ['extra', 'extra_forbidden'],
    ])
  })

  test('reports every missing field', async () => {
    const answer = await dispatcher.call('PUT', dispatcher.sourcePath(newId()), {})
    expect(answer.body.error.details.map(({ field }) => field)).toEqual([
      'name',
      'description',
      'endpoint_url',
      'example_request_body',
    ])
  })

  test.each([
    ['nothing', undefined, 'missing'],
    ['null', 'null', 'missing'],
    ['a list', '[]', 'model_attributes_type'],
    ['a text', '"x"', 'model_attributes_type'],
  ])('refuses %s as the body', async (_what, body, code) => {
    const answer = await dispatcher.call('PUT', dispatcher.sourcePath(newId()), body, {
      'content-type': 'application/json',
    })
    expect(answer).toMatchObject({ status: 422, body: { error: { details: [{ field: 'body', code }] } } })
  })

  test('refuses an id that is not a UUID', async () => {
    const answer = await dispatcher.call('PUT', dispatcher.sourcePath('nonsense'), sourceIn({}))
    expect(answer).toMatchObject({
      status: 422,
      body: { error: { details: [{ field: 'source_id', code: 'uuid_parsing' }] } },
    })
  })

  test('does not repeat the secret', async () => {
    const answer = await save(newId(), { signing_secret: 'do-not-repeat-me', endpoint_url: 'nonsense' })
    expect(JSON.stringify(answer.body)).not.toContain('do-not-repeat-me')
  })
})

describe('422 verification_failed', () => {
  test.each([400, 401, 410, 503])('status %i', async (status) => {
    dispatcher.endpoint.answerWith((_request, index) => ({ status: index === 0 ? 204 : status }))
    expect(await verificationError({})).toMatchObject({
      reason: 'status',
      status,
      message: expect.stringContaining(String(status)),
      logged: 'rejected',
    })
    expect(dispatcher.endpoint.requests).toHaveLength(3)
  })

  test('a redirect is not followed; the error has its location', async () => {
    dispatcher.endpoint.answerWith((_request, index) =>
      index === 0 ? {} : { redirect: 'https://elsewhere.example/x', status: 308 },
    )
    expect(await verificationError({})).toMatchObject({
      reason: 'redirect',
      status: 308,
      location: 'https://elsewhere.example/x',
      logged: 'rejected',
    })
  })

  test('an unused port', async () => {
    const port = await freePort()
    expect(await verificationError({ endpoint_url: `http://127.0.0.1:${port}/` })).toMatchObject({
      reason: 'unreachable',
      kind: 'connection_refused',
      logged: 'unreachable',
    })
  })

  test('a connection that is reset', async () => {
    dispatcher.endpoint.answerWith((_request, index) => (index === 0 ? {} : 'reset'))
    expect(await verificationError({})).toMatchObject({ reason: 'unreachable', kind: 'connection_reset' })
  })

  test('a certificate that is not trusted; the error says why', async () => {
    const tls = await createCertificate({ names: ['127.0.0.1'] })
    const secure = await startCustomerEndpoint({ tls })
    expect(await verificationError({ endpoint_url: secure.url })).toMatchObject({
      reason: 'unreachable',
      kind: 'tls',
      tls_fault: 'self_signed',
    })
    expect(secure.requests).toHaveLength(0)
    await secure.close()
  })

  test('a secret that the endpoint repeats in its answer appears neither in the error nor in the log', async () => {
    const secret = 'echoed-secret with space'
    const echo = await startRawEndpoint((socket) => {
      const location = `https://x.example/?s=${encodeURIComponent(secret)}&t=${secret.replaceAll(' ', '%20')}`
      socket.end(`HTTP/1.1 302 Found\r\nlocation: ${location}\r\ncontent-length: 0\r\n\r\n`)
    })
    const id = newId()
    const answer = await save(id, { endpoint_url: echo.url, signing_secret: secret })
    expect(answer).toMatchObject({ status: 422, body: { error: { location: expect.stringContaining('[hidden]') } } })
    expect(JSON.stringify([answer.body, await logOf(id)])).not.toMatch(/echoed-secret/)
    await echo.close()
  })

  test('a time-out', async () => {
    // The deadline itself is tested in test/outbound.
    const late = await dispatcher.startAnother({
      sendRequest: async ({ deadlineMs }) => ({
        kind: 'timed_out',
        phase: 'answer',
        wasSent: true,
        detail: 'the endpoint took too long to answer',
        durationMs: deadlineMs,
      }),
    })
    const id = newId()
    const answer = await callDispatcher(late.url, 'PUT', dispatcher.sourcePath(id), sourceIn({}))
    expect(answer).toMatchObject({
      status: 422,
      body: { error: { code: 'verification_failed', reason: 'timed_out', kind: 'answer' } },
    })
    expect(await logOf(id)).toEqual([expect.objectContaining({ outcome: 'timed_out', duration_ms: 10_000 })])
  })

  test('a name that resolves to a private address; the error has the address', async () => {
    const rebound = await dispatcher.startAnother({
      sendRequest: async () => ({
        kind: 'refused',
        code: 'url_not_public',
        address: '10.1.2.3',
        detail: 'hooks.example.com: 10.1.2.3 is not a public address',
        durationMs: 1,
      }),
    })
    const answer = await callDispatcher(rebound.url, 'PUT', dispatcher.sourcePath(newId()), sourceIn({}))
    expect(answer).toMatchObject({
      status: 422,
      body: { error: { code: 'verification_failed', reason: 'url_not_public', address: '10.1.2.3' } },
    })
  })
})

describe('409', () => {
  test('a name is taken ignoring case, and no request is sent', async () => {
    await save(newId(), { name: 'Straße École' })
    dispatcher.endpoint.requests.length = 0
    for (const name of ['STRASSE ÉCOLE', 'straße école', ' Straße E\u0301cole ']) {
      expect(await save(newId(), { name })).toMatchObject({ status: 409, body: { error: { code: 'name_taken' } } })
    }
    expect(dispatcher.endpoint.requests).toHaveLength(0)
  })

  test('a rename keeps the id and frees the old name', async () => {
    const id = newId()
    await save(id, { name: 'Old name' })
    expect(await save(id, { name: 'OLD NAME' })).toMatchObject({ status: 200, body: { id, name: 'OLD NAME' } })
    expect((await save(id, { name: 'New name' })).status).toBe(200)
    expect((await save(newId(), { name: 'old name' })).status).toBe(201)
  })

  test('another organization may use the same name', async () => {
    const other = await dispatcher.createOrganization()
    await save(newId(), { name: 'Shared name' })
    const path = sourcePath(other, newId())
    const answer = await dispatcher.call(
      'PUT',
      path,
      sourceIn({ name: 'Shared name', endpoint_url: dispatcher.endpoint.url }),
    )
    expect(answer.status).toBe(201)
  })

  test('the name of a deleted source can be used again, its id cannot', async () => {
    const id = newId()
    await save(id, { name: 'Short-lived' })
    await dispatcher.call('DELETE', dispatcher.sourcePath(id))
    expect(await save(id, { name: 'Short-lived' })).toMatchObject({
      status: 409,
      body: { error: { code: 'id_taken' } },
    })
    expect((await save(newId(), { name: 'Short-lived' })).status).toBe(201)
  })

  test("the id of another organization's source is refused", async () => {
    const other = await dispatcher.createOrganization()
    const id = newId()
    const before = (await save(id, { name: 'Mine' })).body
    dispatcher.endpoint.requests.length = 0
    const path = sourcePath(other, id)
    const answer = await dispatcher.call('PUT', path, sourceIn({ endpoint_url: dispatcher.endpoint.url }))
    expect(answer).toMatchObject({ status: 409, body: { error: { code: 'id_taken' } } })
    expect(dispatcher.endpoint.requests).toHaveLength(0)
    expect((await read(id)).body).toEqual(before)
  })

  test('of two concurrent saves one is written completely, and the other gets source_changed', async () => {
    const id = newId()
    await save(id, { name: 'Contested', signing_secret: 'secret zero' })
    dispatcher.endpoint.requests.length = 0
    // Answers both verification requests only after both have arrived.
    dispatcher.endpoint.answerWith(async () => {
      await dispatcher.endpoint.waitForRequests(2)
      return { status: 200 }
    })
    const one = {
      name: 'One',
      description: 'one',
      endpoint_url: `${dispatcher.endpoint.url}/one`,
      signing_secret: 'secret one',
    }
    const two = {
      name: 'Two',
      description: 'two',
      endpoint_url: `${dispatcher.endpoint.url}/two`,
      signing_secret: 'secret two',
    }
    const answers = await Promise.all([save(id, one), save(id, two)])
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409])
    expect(answers.find(({ status }) => status === 409)?.body.error.code).toBe('source_changed')
    const stored = (await read(id)).body
    const winner = stored.name === 'One' ? one : two
    expect(stored).toMatchObject({ description: winner.description, endpoint_url: winner.endpoint_url })

    dispatcher.endpoint.answerWith({ status: 204 })
    dispatcher.endpoint.requests.length = 0
    await dispatcher.call('POST', `${dispatcher.sourcePath(id)}/test`)
    expect(dispatcher.endpoint.requests[0]?.json).toMatchObject({
      data: { signing_secret: winner.signing_secret, target_url: winner.endpoint_url },
    })
  })

  test('a save that keeps the secret is never combined with a new secret that it did not verify', async () => {
    const id = newId()
    await save(id, { name: 'Mixture', signing_secret: 'old secret' })
    dispatcher.endpoint.requests.length = 0
    dispatcher.endpoint.answerWith(async (request) => {
      await dispatcher.endpoint.waitForRequests(2)
      // Delays the save that keeps the secret, so that the new secret is written first.
      if (request.text.includes('old secret')) await dispatcher.call('GET', dispatcher.sourcePath(id))
      return { status: 200 }
    })
    const answers = await Promise.all([
      save(id, { name: 'Mixture', signing_secret: 'new secret' }),
      save(id, { name: 'Mixture', endpoint_url: `${dispatcher.endpoint.url}/kept` }),
    ])
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409])
  })

  test('two concurrent saves with the same values both succeed', async () => {
    for (const id of [newId(), newId()]) {
      dispatcher.endpoint.requests.length = 0
      dispatcher.endpoint.answerWith(async () => {
        await dispatcher.endpoint.waitForRequests(2)
        return { status: 200 }
      })
      const source = { name: `Twins ${id}`, signing_secret: 'the same secret' }
      const answers = await Promise.all([save(id, source), save(id, source)])
      expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 201])
    }
  })

  test('of two concurrent new sources with one name, one gets it', async () => {
    dispatcher.endpoint.answerWith(async () => {
      await dispatcher.endpoint.waitForRequests(2)
      return { status: 200 }
    })
    const answers = await Promise.all([
      save(newId(), { name: 'Contested name' }),
      save(newId(), { name: 'CONTESTED NAME' }),
    ])
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 409])
    expect(answers.find(({ status }) => status === 409)?.body.error.code).toBe('name_taken')
  })

  test('a save does not restore a source that was deleted meanwhile', async () => {
    const id = newId()
    await save(id, { name: 'Deleted meanwhile' })
    dispatcher.endpoint.answerWith(async () => {
      await dispatcher.call('DELETE', dispatcher.sourcePath(id))
      return { status: 200 }
    })
    expect(await save(id, { name: 'Deleted meanwhile' })).toMatchObject({
      status: 409,
      body: { error: { code: 'id_taken' } },
    })
    expect((await read(id)).status).toBe(404)
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

describe('verify=if_changed', () => {
  test('sends and writes nothing if the stored source has the same values', async () => {
    const id = newId()
    const source = { name: 'Steady', signing_secret: 'steady secret' }
    const first = await save(id, source, '?verify=if_changed')
    expect(first.status).toBe(201)
    const again = await save(id, source, '?verify=if_changed')
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
    await save(id, source)
    const changed = 'endpoint_url' in change ? { endpoint_url: `${dispatcher.endpoint.url}/other` } : change
    expect((await save(id, { ...source, ...changed }, '?verify=if_changed')).status).toBe(200)
    expect(dispatcher.endpoint.requests).toHaveLength(2)
  })

  test('verifies a source that was never verified', async () => {
    const id = newId()
    const source = { name: 'Unverified yet' }
    await save(id, source, '?verify=never')
    expect((await save(id, source, '?verify=if_changed')).body.verified_at).toEqual(expect.any(String))
    expect(dispatcher.endpoint.requests).toHaveLength(1)
  })
})

describe('verify=never', () => {
  test('saves without a request, logs a warning, and marks the source as unverified', async () => {
    const id = newId()
    const answer = await save(id, { name: 'From a manifest', signing_secret: 's3cret' }, '?verify=never')
    expect(answer).toMatchObject({ status: 201, body: { verified_at: null, has_signing_secret: true } })
    expect(dispatcher.endpoint.requests).toHaveLength(0)
    expect(dispatcher.logLines).toContainEqual(expect.objectContaining({ level: 'warn', source_id: id }))
  })

  test('keeps verified_at if the stored source has the same values', async () => {
    const id = newId()
    const verified = (await save(id, { name: 'Verified' })).body
    expect((await save(id, { name: 'Verified' }, '?verify=never')).body).toEqual(verified)
  })

  test('still refuses a URL that is not public', async () => {
    const answer = await save(newId(), { endpoint_url: 'http://10.0.0.1/' }, '?verify=never')
    expect(answer.body.error.details).toEqual([expect.objectContaining({ code: 'url_not_public' })])
  })

  test('any other mode is refused', async () => {
    expect(await save(newId(), {}, '?verify=maybe')).toMatchObject({
      status: 422,
      body: { error: { details: [{ field: 'verify', code: 'enum' }] } },
    })
  })
})
