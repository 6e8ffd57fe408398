import { describe, expect, test } from '@jest/globals'
import { compile, INTERNAL_OPERATIONS, InternalErrorResponse } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { type Answer, callDispatcher, refusal, sourceIn, TOKEN } from './support/test-dispatcher.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const SECOND_TOKEN = 'the-second-token-of-the-list-while-it-is-changed'
const isError = compile(InternalErrorResponse)

const dispatcher = useDispatcher({}, { INTERNAL_API_TOKEN: `${TOKEN}, ${SECOND_TOKEN}` })

const listPath = (): string => dispatcher.sourcePath('').slice(0, -1)
const callWith = (authorization: string): Promise<Answer> =>
  dispatcher.call('GET', listPath(), undefined, { authorization })

describe('401', () => {
  test.each([
    ['another scheme', `Basic ${TOKEN}`],
    ['no token', 'Bearer'],
    ['another token', `Bearer ${'x'.repeat(TOKEN.length)}`],
    ['the beginning of a token', `Bearer ${TOKEN.slice(0, -1)}`],
    ['the list itself', `Bearer ${TOKEN},${SECOND_TOKEN}`],
  ])('for %s', async (_what, authorization) => {
    const answer = await callWith(authorization)
    expect(answer).toMatchObject(refusal(401, 'unauthorized'))
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    expect(isError(answer.body)).toBe(true)
  })

  test('for every operation and every unknown path without a token', async () => {
    const paths = [
      ...Object.values(INTERNAL_OPERATIONS).map(({ method, path }) => [method.toUpperCase(), path] as const),
      ['GET', '/internal/nothing'] as const,
      ['DELETE', '/'] as const,
    ]
    for (const [method, path] of paths) {
      const answer = await fetch(`${dispatcher.url}${path.replaceAll(/\{\w+\}/g, newId())}`, { method })
      expect({ status: answer.status, body: await answer.json() }).toMatchObject(refusal(401, 'unauthorized'))
    }
  })
})

describe('200', () => {
  test.each([TOKEN, SECOND_TOKEN])('with each token of the list', async (token) => {
    expect((await callWith(`Bearer ${token}`)).status).toBe(200)
    expect((await callWith(`bearer   ${token}`)).status).toBe(200)
  })

  test.each(['/healthz', '/readyz', '/metrics', '/internal/openapi.json'])('for %s without a token', async (path) => {
    expect((await fetch(`${dispatcher.url}${path}`)).status).toBe(200)
  })
})

describe('errors', () => {
  test.each([
    ['GET', `/internal/deliveries/${newId()}`],
    ['GET', `/INTERNAL/organizations/${newId()}/webhook-sources`],
    ['OPTIONS', '/internal/anything'],
  ])('404 for %s %s', async (method, path) => {
    const answer = await dispatcher.call(method, path)
    expect(answer).toMatchObject(refusal(404, 'not_found'))
    expect(isError(answer.body)).toBe(true)
  })

  test('400 for a body of more than 512 KiB', async () => {
    const answer = await dispatcher.call('PUT', dispatcher.sourcePath(newId()), { name: 'x'.repeat(524_288) })
    expect(answer).toMatchObject(refusal(400, 'body_too_large'))
    expect(isError(answer.body)).toBe(true)
  })

  test('500 for an unexpected error, without its message', async () => {
    const broken = await dispatcher.startAnother({
      sendRequest: async () => {
        throw new Error('internal: postgres://user:password@host')
      },
    })
    const answer = await callDispatcher(broken.url, 'PUT', dispatcher.sourcePath(newId()), sourceIn({}))
    expect(answer).toMatchObject(refusal(500, 'internal_error'))
    expect(JSON.stringify(answer.body)).not.toContain('postgres')
  })
})

describe('the log', () => {
  test('has one line for each request, with its id and without the token', async () => {
    await dispatcher.call('GET', listPath(), undefined, { 'x-request-id': 'seen-in-the-log' })
    expect(dispatcher.logLines).toContainEqual(
      expect.objectContaining({ request_id: 'seen-in-the-log', method: 'GET', path: listPath(), status: 200 }),
    )
    expect(JSON.stringify(dispatcher.logLines)).not.toContain(TOKEN)
  })

  test('has a warning at every start with allowed subnets', () => {
    expect(dispatcher.logLines).toContainEqual(
      expect.objectContaining({ level: 'warn', allowed_subnets: ['127.0.0.0/8'] }),
    )
  })
})

const runsPath = (organizationId = dispatcher.organizationId) => `/internal/organizations/${organizationId}/runs`

test('the internal API cancels a run and a queue, each once, as the person of X-Actor', async () => {
  const { workflowId, runIds } = await dispatcher.createRuns(3)
  const actor = JSON.stringify({ user_id: newId(), name: 'Ada', address: null })
  const cancel = (path: string, body?: unknown) => dispatcher.call('POST', path, body, { 'x-actor': actor })
  expect(await cancel(`${runsPath()}/${runIds[1]}/cancel`)).toMatchObject({ status: 204 })
  expect(await cancel(`${runsPath()}/${runIds[1]}/cancel`)).toMatchObject(refusal(409, 'run_ended'))
  const queue = { kind: 'workflow', id: workflowId }
  const { body } = await cancel(`${runsPath()}/cancel-queued`, queue)
  expect(body).toEqual({ cancelled: 2, is_more: false })
  const runs = await dispatcher.db.prisma.start.findMany({ where: { id: { in: runIds } } })
  expect(runs.map(({ status, cancelledByName: by }) => `${status} by ${by}`)).toEqual(Array(3).fill('cancelled by Ada'))
  expect(runs.map(({ notSucceededAt }) => notSucceededAt)).toEqual(runs.map(({ finishedAt }) => finishedAt))
})

test('the internal API cancels nothing of another organization', async () => {
  const { sessionId, runIds } = await dispatcher.createRuns(1)
  const other = runsPath(await dispatcher.createOrganization())
  expect(await dispatcher.call('POST', `${other}/${runIds[0]}/cancel`)).toMatchObject({ status: 404 })
  const { body } = await dispatcher.call('POST', `${other}/cancel-queued`, { kind: 'session', id: sessionId })
  expect(body).toEqual({ cancelled: 0, is_more: false })
})
