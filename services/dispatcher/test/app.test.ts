import { request as httpRequest } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { compile, INTERNAL_OPERATIONS, InternalErrorResponse } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { type Answer, sourceIn, startTestDispatcher, type TestDispatcher, TOKEN } from './support/test-dispatcher.ts'

const SECOND_TOKEN = 'the-second-token-of-the-list-while-it-is-changed'
const isError = compile(InternalErrorResponse)

let dispatcher: TestDispatcher
let listPath: string

beforeAll(async () => {
  dispatcher = await startTestDispatcher({}, { INTERNAL_API_TOKEN: `${TOKEN}, ${SECOND_TOKEN}` })
  listPath = `/internal/organizations/${dispatcher.organizationId}/webhook-sources`
}, 120_000)
afterAll(async () => {
  await dispatcher.stop()
})

const newSourcePath = (): string => dispatcher.sourcePath(newId())

const callWith = (authorization: string): Promise<Answer> =>
  dispatcher.call('GET', listPath, undefined, { authorization })

/** A request as raw as node:http sends one, for what fetch would not send. */
function rawCall(method: string, target: string, headers: Record<string, string> = {}): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const outgoing = httpRequest(`${dispatcher.url}${target}`, { method, headers, agent: false }, (incoming) => {
    let text = ''
    incoming.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    incoming.on('end', () =>
      resolve({
        status: incoming.statusCode ?? 0,
        headers: new Headers(incoming.headers as Record<string, string>),
        body: (text === '' ? null : JSON.parse(text)) as Answer['body'],
      }),
    )
  })
  outgoing.on('error', reject)
  outgoing.end()
  return promise
}

describe('401', () => {
  test.each([
    ['no header', ''],
    ['another scheme', `Basic ${TOKEN}`],
    ['no token', 'Bearer'],
    ['an empty token', 'Bearer '],
    ['another token', `Bearer ${'x'.repeat(TOKEN.length)}`],
    ['the beginning of a token', `Bearer ${TOKEN.slice(0, -1)}`],
    ['a token and more', `Bearer ${TOKEN}x`],
    ['two tokens', `Bearer ${TOKEN} ${SECOND_TOKEN}`],
    ['the list itself', `Bearer ${TOKEN},${SECOND_TOKEN}`],
    ['a token in another case', `Bearer ${TOKEN.toUpperCase()}`],
  ])('%s', async (_what, authorization) => {
    const answer = await callWith(authorization)
    expect(answer).toMatchObject({ status: 401, body: { error: { code: 'unauthorized' } } })
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    expect(isError(answer.body)).toBe(true)
  })

  test('comes before anything is said about the path, for every operation and for none', async () => {
    const paths = [
      ...Object.values(INTERNAL_OPERATIONS).map(({ method, path }) => [method.toUpperCase(), path] as const),
      ['GET', '/internal/nothing'] as const,
      ['DELETE', '/'] as const,
    ]
    for (const [method, path] of paths) {
      const filled = path.replaceAll(/\{\w+\}/g, newId())
      expect(await rawCall(method, filled)).toMatchObject({ status: 401, body: { error: { code: 'unauthorized' } } })
    }
  })
})

describe('the tokens', () => {
  test.each([TOKEN, SECOND_TOKEN])('each of the list is taken', async (token) => {
    expect((await callWith(`Bearer ${token}`)).status).toBe(200)
    expect((await callWith(`bearer   ${token}`)).status).toBe(200)
  })

  test('health, metrics and the description need none', async () => {
    for (const path of ['/healthz', '/readyz', '/metrics', '/internal/openapi.json']) {
      expect((await fetch(`${dispatcher.url}${path}`)).status).toBe(200)
    }
  })
})

describe('errors', () => {
  test.each([
    ['GET', '/'],
    ['GET', '/internal'],
    ['GET', '/internal/deliveries'],
    ['GET', `/internal/deliveries/${newId()}`],
    ['POST', `/internal/deliveries/${newId()}`],
    ['PATCH', `/internal/organizations/${newId()}/webhook-sources/${newId()}`],
    ['PUT', `/internal/organizations/${newId()}/webhook-sources/${newId()}/`],
    ['GET', `/INTERNAL/organizations/${newId()}/webhook-sources`],
    ['OPTIONS', '/internal/anything'],
  ])('404 for %s %s', async (method, path) => {
    const answer = await rawCall(method, path, { authorization: `Bearer ${TOKEN}` })
    expect(answer).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
    expect(isError(answer.body)).toBe(true)
  })

  test('400 for a path that is no valid percent-encoding', async () => {
    const answer = await rawCall('GET', '/internal/organizations/%ff/webhook-sources', {
      authorization: `Bearer ${TOKEN}`,
    })
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'invalid_request' } } })
  })

  test.each([
    ['no JSON', '{"name":', 'application/json', 'invalid_json'],
    ['a form', 'name=x', 'application/x-www-form-urlencoded', 'unsupported_media_type'],
    ['plain text', '{}', 'text/plain', 'unsupported_media_type'],
    ['another charset', '{}', 'application/json; charset=latin1', 'unsupported_media_type'],
    ['more than 1 MiB', JSON.stringify({ name: 'x'.repeat(1_100_000) }), 'application/json', 'body_too_large'],
  ])('400 for %s as the body', async (_what, body, type, code) => {
    const answer = await dispatcher.call('PUT', newSourcePath(), body, { 'content-type': type })
    expect(answer).toMatchObject({ status: 400, body: { error: { code } } })
    expect(isError(answer.body)).toBe(true)
  })

  test('400 for bytes that are no UTF-8, which would be sent on as something else', async () => {
    const body = Buffer.concat([Buffer.from('{"name":"'), Buffer.of(0xff), Buffer.from('"}')])
    const response = await fetch(`${dispatcher.url}${newSourcePath()}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      body,
    })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_json' } })
  })

  test('400 for a compressed body', async () => {
    const answer = await dispatcher.call('PUT', newSourcePath(), '{}', { 'content-encoding': 'gzip' })
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'unsupported_media_type' } } })
  })

  test('carry the request id of the caller, or one of their own', async () => {
    const given = await dispatcher.call('GET', '/nothing', undefined, { 'x-request-id': 'from-the-caller.1' })
    expect(given.headers.get('x-request-id')).toBe('from-the-caller.1')
    expect(given.body.error.request_id).toBe('from-the-caller.1')
    const own = await dispatcher.call('GET', '/nothing', undefined, { 'x-request-id': 'not sane {}' })
    expect(own.body.error.request_id).toMatch(/^[0-9a-f-]{36}$/)
    expect(own.headers.get('x-request-id')).toBe(own.body.error.request_id)
  })

  test('what is unforeseen is 500, and nothing of the inside leaves', async () => {
    const broken = await dispatcher.startAnother({
      sendRequest: async () => {
        throw new Error('inside: postgres://user:password@host')
      },
    })
    const response = await fetch(`${broken.url}${newSourcePath()}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify(sourceIn({})),
    })
    const text = await response.text()
    expect(response.status).toBe(500)
    expect(JSON.parse(text)).toMatchObject({ error: { code: 'internal_error' } })
    expect(text).not.toContain('inside')
  })
})

describe('every operation', () => {
  test('answers something else than 404 for the route', async () => {
    for (const { method, path } of Object.values(INTERNAL_OPERATIONS)) {
      const filled = path.replace('{organization_id}', dispatcher.organizationId).replaceAll(/\{\w+\}/g, newId())
      const { body } = await dispatcher.call(method.toUpperCase(), filled, method === 'put' ? {} : undefined)
      expect(JSON.stringify(body)).not.toContain(`${filled} not found`)
    }
  })
})

describe('the log of requests', () => {
  test('has one line for each, with the request id and without credentials', async () => {
    await dispatcher.call('GET', listPath, undefined, { 'x-request-id': 'seen-in-the-log' })
    expect(dispatcher.logLines).toContainEqual(
      expect.objectContaining({ request_id: 'seen-in-the-log', method: 'GET', path: listPath, status: 200 }),
    )
    expect(JSON.stringify(dispatcher.logLines)).not.toContain(TOKEN)
  })

  test('warns of allowed subnets at every start', () => {
    expect(dispatcher.logLines).toContainEqual(
      expect.objectContaining({ level: 'warn', allowed_subnets: ['127.0.0.0/8'] }),
    )
  })
})
