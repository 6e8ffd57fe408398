import { beforeAll, describe, expect, test } from '@jest/globals'
import { compile, DeliveryOut, INTERNAL_OPERATIONS, InternalErrorResponse } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { checkServiceToken } from '@workflow-service/webhook-token'
import {
  callDispatcher,
  type InternalResponse,
  invalidField,
  refusal,
  sourceIn,
  sourcePath,
  TOKEN,
} from './support/test-dispatcher.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const SECOND_TOKEN = 'the-second-token-of-the-list-while-it-is-changed'
const isError = compile(InternalErrorResponse)

const dispatcher = useDispatcher(
  {},
  {
    INTERNAL_API_TOKEN: `${TOKEN}, ${SECOND_TOKEN}`,
    // The log's entries have fixed dates, and would be deleted once they are old enough.
    DELIVERY_LOG_RETENTION_DAYS: '0',
  },
)
let otherOrganizationId: string
beforeAll(async () => {
  otherOrganizationId = await dispatcher.createOrganization()
})

const listPath = (organizationId = dispatcher.organizationId): string => sourcePath(organizationId, '').slice(0, -1)
const callWith = (authorization: string): Promise<InternalResponse> =>
  dispatcher.call('GET', listPath(), undefined, { authorization })

describe('401', () => {
  test.each([
    ['another scheme', `Basic ${TOKEN}`],
    ['no token', 'Bearer'],
    ['another token', `Bearer ${'x'.repeat(TOKEN.length)}`],
    ['the beginning of a token', `Bearer ${TOKEN.slice(0, -1)}`],
    ['the list itself', `Bearer ${TOKEN},${SECOND_TOKEN}`],
  ])('for %s', async (_what, authorization) => {
    const response = await callWith(authorization)
    expect(response).toMatchObject(refusal(401, 'unauthorized'))
    expect(response.headers.get('www-authenticate')).toBe('Bearer')
    expect(isError(response.body)).toBe(true)
  })

  test('for every operation and every unknown path without a token', async () => {
    const paths = [
      ...Object.values(INTERNAL_OPERATIONS).map(({ method, path }) => [method.toUpperCase(), path] as const),
      ['GET', '/internal/nothing'] as const,
      ['DELETE', '/'] as const,
    ]
    for (const [method, path] of paths) {
      const response = await fetch(`${dispatcher.url}${path.replaceAll(/\{\w+\}/g, newId())}`, { method })
      expect({ status: response.status, body: await response.json() }).toMatchObject(refusal(401, 'unauthorized'))
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
    const response = await dispatcher.call(method, path)
    expect(response).toMatchObject(refusal(404, 'not_found'))
    expect(isError(response.body)).toBe(true)
  })

  test('400 for a body of more than 512 KiB', async () => {
    const response = await dispatcher.call('PUT', dispatcher.sourcePath(newId()), { name: 'x'.repeat(524_288) })
    expect(response).toMatchObject(refusal(400, 'body_too_large'))
    expect(isError(response.body)).toBe(true)
  })

  test('500 for an unexpected error, without its message', async () => {
    const broken = await dispatcher.startAnother({
      sendRequest: async () => {
        throw new Error('internal: postgres://user:password@host')
      },
    })
    const response = await callDispatcher(broken.url, 'PUT', dispatcher.sourcePath(newId()), sourceIn({}))
    expect(response).toMatchObject(refusal(500, 'internal_error'))
    expect(JSON.stringify(response.body)).not.toContain('postgres')
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
  const actor = await dispatcher.createActor()
  const cancel = (path: string, body?: unknown) => dispatcher.call('POST', path, body, actor)
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

describe('the list of sources', () => {
  test('has every source that is not deleted, sorted by name in code point order, without secrets', async () => {
    const organizationId = await dispatcher.createOrganization()
    const ids = ['b', 'a', 'Z', 'é', 'aa', 'deleted'].map((name) => [name, newId()] as const)
    for (const [name, id] of ids) {
      await dispatcher.saveIn(organizationId, { name, signing_secret: `secret of ${name} ........` }, id)
    }
    await dispatcher.call('DELETE', sourcePath(organizationId, String(ids.at(-1)?.[1])))
    const { status, body } = await dispatcher.call('GET', listPath(organizationId))
    expect(status).toBe(200)
    expect(body.data.map((source) => (source as unknown as { name: string }).name)).toEqual(['Z', 'a', 'aa', 'b', 'é'])
    expect(JSON.stringify(body)).not.toContain('secret of')
  })

  test('is empty for another organization and for an unknown one', async () => {
    for (const id of [otherOrganizationId, newId()]) {
      expect(await dispatcher.call('GET', listPath(id))).toMatchObject({ status: 200, body: { data: [] } })
    }
  })
})

describe('a source', () => {
  test('that is unknown, deleted or of another organization gets the same 404', async () => {
    const own = await dispatcher.saveSource()
    const deleted = await dispatcher.saveSource()
    await dispatcher.call('DELETE', dispatcher.sourcePath(deleted))
    const paths = [dispatcher.sourcePath(newId()), dispatcher.sourcePath(deleted), sourcePath(otherOrganizationId, own)]
    for (const path of paths) {
      for (const [method, suffix] of [
        ['GET', ''],
        ['DELETE', ''],
        ['POST', '/test'],
        ['GET', '/deliveries'],
      ] as const) {
        // Its log stays readable.
        if (suffix === '/deliveries' && path.endsWith(deleted)) continue
        const response = await dispatcher.call(method, `${path}${suffix}`)
        expect(response).toMatchObject({
          status: 404,
          body: { error: { code: 'not_found', message: 'Webhook source not found.' } },
        })
      }
    }
    expect((await dispatcher.readSource(own)).status).toBe(200)
  })
})

describe('a deletion', () => {
  test('answers 204 without a body, deletes the secret, keeps the log readable, and lets waiting runs go on', async () => {
    const { prisma } = dispatcher.db
    const id = await dispatcher.saveSource({ signing_secret: 'to be deleted' })
    await prisma.webhookSource.update({ where: { id }, data: { pausedAt: new Date() } })
    const waitingSince = new Date(Date.now() + 86_400_000)
    const session = { id: newId(), organizationId: otherOrganizationId, pausedSourceId: id, waitingSince }
    await prisma.session.create({ data: session })
    expect(await dispatcher.call('DELETE', dispatcher.sourcePath(id))).toMatchObject({ status: 204, body: null })
    const stored = await prisma.webhookSource.findUnique({ where: { id } })
    expect(stored).toMatchObject({ signingSecret: null, pausedAt: null, deletedAt: expect.any(Date) })
    expect(await dispatcher.readLog(id)).toMatchObject([{ kind: 'verification', outcome: 'accepted' }])
    const woken = await prisma.session.findUniqueOrThrow({ where: { id: session.id } })
    expect(woken.pausedSourceId).toBeNull()
  })
})

describe('a test of a source', () => {
  test('verifies the stored values with the stored secret, and updates verified_at', async () => {
    const id = await dispatcher.saveSource({
      signing_secret: 'the stored secret',
      example_request_body: { b: 1, a: [true] },
    })
    const before = (await dispatcher.readSource(id)).body
    dispatcher.endpoint.requests.length = 0
    const response = await dispatcher.call('POST', `${dispatcher.sourcePath(id)}/test`)
    expect(response).toMatchObject({ status: 200, body: { kind: 'verification', outcome: 'accepted', status: 204 } })
    const [request, ...others] = dispatcher.endpoint.requests
    expect(others).toEqual([])
    expect(request?.json).toMatchObject({
      type: 'service.webhook.verification',
      source_id: id,
      data: {
        target_url: dispatcher.endpoint.url,
        signing_secret: 'the stored secret',
        body_example: { b: 1, a: [true] },
      },
    })
    expect(await checkServiceToken(request?.headers['x-service-token'], 'the stored secret')).toMatchObject({
      ok: true,
    })
    const after = (await dispatcher.readSource(id)).body
    expect({ ...after, verified_at: null }).toEqual({ ...before, verified_at: null })
    expect(Date.parse(after.verified_at ?? '')).toBeGreaterThanOrEqual(Date.parse(before.verified_at ?? ''))
  })

  test('answers the outcome of an endpoint that does not confirm, and changes nothing', async () => {
    const id = await dispatcher.saveSource()
    const before = (await dispatcher.readSource(id)).body
    dispatcher.endpoint.answerWith({ status: 500 })
    const response = await dispatcher.call('POST', `${dispatcher.sourcePath(id)}/test`)
    expect(response).toMatchObject({
      status: 200,
      body: { outcome: 'rejected', status: 500, reason: 'The endpoint answered 500.' },
    })
    expect((await dispatcher.readSource(id)).body).toEqual(before)
    const log = await dispatcher.call('GET', `${dispatcher.sourcePath(id)}/deliveries?limit=1`)
    expect(log.body.data).toEqual([response.body])
    // Agents read these fields: a log entry has more, for people.
    const fields = Object.keys(DeliveryOut.properties)
    expect([response.body, ...log.body.data].map((delivery) => Object.keys(delivery))).toEqual([fields, fields])
  })

  test('answers 422 and sends nothing if no key decrypts the stored secret', async () => {
    const id = await dispatcher.saveSource({ signing_secret: 'to be damaged' })
    const stored = await dispatcher.db.prisma.webhookSource.findUnique({ where: { id } })
    const damaged = Buffer.from(stored?.signingSecret ?? [])
    damaged[damaged.length - 1]! ^= 1
    await dispatcher.db.prisma.webhookSource.update({ where: { id }, data: { signingSecret: damaged } })
    dispatcher.endpoint.requests.length = 0
    const response = await dispatcher.call('POST', `${dispatcher.sourcePath(id)}/test`)
    expect(response).toMatchObject({ status: 422, body: { error: { details: [{ field: 'signing_secret' }] } } })
    expect(dispatcher.endpoint.requests).toEqual([])
  })
})

/** Answers two verification requests only after both have arrived, so that their saves are concurrent. */
async function answerTwoTogether(): Promise<{ status: number }> {
  await dispatcher.endpoint.waitForRequests(2)
  return { status: 200 }
}

const statusesOf = (responses: InternalResponse[]): number[] =>
  responses.map(({ status }) => status).toSorted((a, b) => a - b)

describe('409 for a save', () => {
  test('a name is taken ignoring case, until its source is renamed or deleted; another organization may use it', async () => {
    const id = newId()
    await dispatcher.save(id, { name: 'Straße École' })
    dispatcher.endpoint.requests.length = 0
    for (const name of ['STRASSE ÉCOLE', 'straße école', ' Straße E\u0301cole ']) {
      expect(await dispatcher.save(newId(), { name })).toMatchObject(refusal(409, 'name_taken'))
    }
    expect(dispatcher.endpoint.requests).toHaveLength(0)
    const other = await dispatcher.createOrganization()
    expect((await dispatcher.saveIn(other, { name: 'Straße École' })).status).toBe(201)
    for (const name of ['STRASSE École', 'New name']) {
      expect(await dispatcher.save(id, { name })).toMatchObject({ status: 200, body: { id, name } })
    }
    expect((await dispatcher.save(newId(), { name: 'Straße École' })).status).toBe(201)
    await dispatcher.call('DELETE', dispatcher.sourcePath(id))
    expect(await dispatcher.save(id, { name: 'New name' })).toMatchObject(refusal(409, 'id_taken'))
    expect((await dispatcher.save(newId(), { name: 'New name' })).status).toBe(201)
  })

  test.each([0, 2])('a version that is not the stored one (%i) changes nothing and sends nothing', async (version) => {
    const id = newId()
    const saved = await dispatcher.save(id, { name: `Versioned ${id}` }, '?version=0')
    expect(saved).toMatchObject({ status: 201, body: { version: 1 } })
    dispatcher.endpoint.requests.length = 0
    expect(await dispatcher.save(id, { name: `Other ${id}` }, `?version=${version}`)).toMatchObject(
      refusal(409, 'source_changed'),
    )
    expect(dispatcher.endpoint.requests).toHaveLength(0)
    expect((await dispatcher.readSource(id)).body).toEqual(saved.body)
  })

  test('a repeated save, as after a lost response, is answered 200 with the stored source and sends nothing', async () => {
    const id = newId()
    const save = (version: number, change: object) =>
      dispatcher.save(id, { name: `Repeated ${id}`, ...change }, `?version=${version}`)
    for (const [version, change] of [{ signing_secret: 'made by the caller' }, { description: 'changed' }].entries()) {
      const { body } = await save(version, change)
      expect(body).toMatchObject({ version: version + 1, has_signing_secret: true })
      dispatcher.endpoint.requests.length = 0
      expect(await save(version, change)).toMatchObject({ status: 200, body })
      expect(dispatcher.endpoint.requests).toHaveLength(0)
    }
    // A caller that has lost its secret replaces it: no second source is needed.
    const another = { signing_secret: 'another secret' }
    expect(await save(0, another)).toMatchObject(refusal(409, 'source_changed'))
    expect(await save(2, another)).toMatchObject({ status: 200, body: { id, version: 3 } })
    expect(dispatcher.endpoint.requests).toMatchObject([{ json: { data: another } }])
  })

  test('an edit of a source that is not there has one response, whether the id is unused, deleted or of another organization', async () => {
    const [deleted, foreign] = [newId(), newId()]
    const other = await dispatcher.createOrganization()
    expect((await dispatcher.saveIn(other, { name: 'Theirs' }, foreign)).status).toBe(201)
    await dispatcher.save(deleted, { name: 'Gone' })
    await dispatcher.call('DELETE', dispatcher.sourcePath(deleted))
    await dispatcher.save(newId(), { name: 'Present' })
    dispatcher.endpoint.requests.length = 0
    for (const id of [newId(), deleted, foreign]) {
      for (const name of ['An edit', 'Present']) {
        const response = await dispatcher.save(id, { name }, '?version=1')
        expect(response).toMatchObject(refusal(409, 'id_taken'))
      }
    }
    // A new source cannot have the id either.
    expect(await dispatcher.save(foreign, { name: 'A new one' })).toMatchObject(refusal(409, 'id_taken'))
    expect((await dispatcher.call('GET', sourcePath(other, foreign))).body).toMatchObject({
      name: 'Theirs',
      version: 1,
    })
    expect(dispatcher.endpoint.requests).toEqual([])
  })

  test('of two concurrent saves one is written completely, and the other gets source_changed', async () => {
    const id = newId()
    await dispatcher.save(id, { name: 'Contested', signing_secret: 'secret zero' })
    dispatcher.endpoint.requests.length = 0
    dispatcher.endpoint.answerWith(answerTwoTogether)
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
    const responses = await Promise.all([dispatcher.save(id, one), dispatcher.save(id, two)])
    expect(statusesOf(responses)).toEqual([200, 409])
    expect(responses.find(({ status }) => status === 409)?.body.error.code).toBe('source_changed')
    const stored = (await dispatcher.readSource(id)).body
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
    await dispatcher.save(id, { name: 'Mixture', signing_secret: 'old secret' })
    dispatcher.endpoint.requests.length = 0
    dispatcher.endpoint.answerWith(async (request) => {
      await dispatcher.endpoint.waitForRequests(2)
      // Delays the save that keeps the secret, so that the new secret is written first.
      if (request.text.includes('old secret')) await dispatcher.call('GET', dispatcher.sourcePath(id))
      return { status: 200 }
    })
    const responses = await Promise.all([
      dispatcher.save(id, { name: 'Mixture', signing_secret: 'new secret' }),
      dispatcher.save(id, { name: 'Mixture', endpoint_url: `${dispatcher.endpoint.url}/kept` }),
    ])
    expect(statusesOf(responses)).toEqual([200, 409])
  })

  test('two concurrent saves with the same values both succeed', async () => {
    for (const id of [newId(), newId()]) {
      dispatcher.endpoint.requests.length = 0
      dispatcher.endpoint.answerWith(answerTwoTogether)
      const source = { name: `Twins ${id}`, signing_secret: 'the same secret' }
      const responses = await Promise.all([dispatcher.save(id, source), dispatcher.save(id, source)])
      expect(statusesOf(responses)).toEqual([200, 201])
    }
  })

  test('of two concurrent new sources with one name, one gets it', async () => {
    dispatcher.endpoint.answerWith(answerTwoTogether)
    const names = ['Contested name', 'CONTESTED NAME']
    const responses = await Promise.all(names.map((name) => dispatcher.save(newId(), { name })))
    expect(statusesOf(responses)).toEqual([201, 409])
    expect(responses.find(({ status }) => status === 409)?.body.error.code).toBe('name_taken')
  })

  test('a save does not restore a source that was deleted meanwhile', async () => {
    const id = newId()
    await dispatcher.save(id, { name: 'Deleted meanwhile' })
    dispatcher.endpoint.answerWith(async () => {
      await dispatcher.call('DELETE', dispatcher.sourcePath(id))
      return { status: 200 }
    })
    expect(await dispatcher.save(id, { name: 'Deleted meanwhile' })).toMatchObject(refusal(409, 'id_taken'))
    expect((await dispatcher.readSource(id)).status).toBe(404)
  })
})

/** 60 entries, newest first: three per millisecond, every tenth rejected, every twentieth a verification. */
const START_MS = Date.parse('2026-01-31T09:00:00.000Z')
const entries = Array.from({ length: 60 }, (_, index) => ({
  id: newId(),
  createdAt: new Date(START_MS + Math.floor(index / 3)),
  outcome: index % 10 === 0 ? 'rejected' : 'accepted',
  kind: index % 20 === 0 ? 'verification' : 'payload',
})).toSorted((a, b) => b.createdAt.getTime() - a.createdAt.getTime() || (a.id < b.id ? 1 : -1))
type Entry = (typeof entries)[number]

const idsOf = (data: readonly { id: string }[]): string[] => data.map(({ id }) => id)

describe('the log of a source', () => {
  let sourceId: string
  const record = (added: readonly Entry[]) =>
    dispatcher.db.prisma.delivery.createMany({
      data: added.map((entry) => ({
        ...entry,
        organizationId: dispatcher.organizationId,
        sourceId,
        status: 200,
        requestBody: {},
        finishedAt: entry.createdAt,
      })),
    })
  beforeAll(async () => {
    sourceId = await dispatcher.saveSource({}, 'never')
    await record(entries)
  })
  const list = (query: string, source = sourceId): Promise<InternalResponse> =>
    dispatcher.call('GET', `${dispatcher.sourcePath(source)}/deliveries${query}`)

  test('has the newest 25 entries by default, and none if the source was never used', async () => {
    const { body } = await list('?colour=unknown')
    expect(idsOf(body.data)).toEqual(idsOf(entries.slice(0, 25)))
    expect(body.pagination).toEqual({ has_more: true, next_cursor: expect.any(String) })
    const fresh = await list('', await dispatcher.saveSource({}, 'never'))
    expect(fresh.body).toEqual({ data: [], pagination: { has_more: false, next_cursor: null } })
  })

  test('has every entry once, in order, although another one comes between two pages', async () => {
    const found: DeliveryOut[] = []
    const newer = { ...entries[0]!, id: newId(), createdAt: new Date(START_MS + 60_000) }
    let query = '?limit=7'
    while (query) {
      const { body } = await list(query)
      found.push(...body.data)
      const { has_more: hasMore, next_cursor: cursor } = body.pagination
      expect(hasMore).toBe(cursor !== null)
      query = cursor === null ? '' : `?limit=7&cursor=${encodeURIComponent(cursor)}`
      if (found.length === 7) await record([newer])
    }
    await dispatcher.db.prisma.delivery.delete({ where: { id: newer.id } })
    expect(idsOf(found)).toEqual(idsOf(entries))
  })

  test.each<[what: string, query: string, isWanted: (entry: Entry) => boolean]>([
    ['outcome', 'outcome=rejected', ({ outcome }) => outcome === 'rejected'],
    ['kind', 'kind=verification', ({ kind }) => kind === 'verification'],
    ['both', 'kind=payload&outcome=rejected', ({ kind, outcome }) => kind === 'payload' && outcome === 'rejected'],
    [
      'time, from `since` to before `until`',
      'since=2026-01-31T09:00:00.005Z&until=2026-01-31T10:00:00.010%2B01:00',
      ({ createdAt }) => createdAt.getTime() >= START_MS + 5 && createdAt.getTime() < START_MS + 10,
    ],
    ['an outcome without entries', 'outcome=timed_out', () => false],
    ['extreme times', 'since=0000-01-01T00:00:00%2B01:00&until=9999-12-31T23:59:59.999999999-01:00', () => true],
  ])('is filtered by %s', async (_what, query, isWanted) => {
    const { body } = await list(`?limit=100&${query}`)
    expect(idsOf(body.data)).toEqual(idsOf(entries.filter(isWanted)))
  })

  test.each([
    ['limit=101', 'limit', 'less_than_equal'],
    ['outcome=good', 'outcome', 'enum'],
    ['until=2026-13-01T00:00:00Z', 'until', 'datetime_parsing'],
    ['cursor=nonsense', 'cursor', 'invalid_cursor'],
  ])('refuses %s', async (query, field, code) => {
    expect(await list(`?${query}`)).toMatchObject(invalidField(field, code))
  })
})
