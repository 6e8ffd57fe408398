import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { type CustomerEndpoint, startCustomerEndpoint } from '@workflow-service/testkit'
import { checkServiceToken } from '@workflow-service/webhook-token'
import { saveTestSource, startTestDispatcher, type TestDispatcher } from './support/test-dispatcher.ts'

let dispatcher: TestDispatcher
let endpoint: CustomerEndpoint
let listPath: string
let otherOrganizationId: string

beforeAll(async () => {
  dispatcher = await startTestDispatcher()
  endpoint = await startCustomerEndpoint()
  listPath = `/internal/organizations/${dispatcher.organizationId}/webhook-sources`
  otherOrganizationId = newId()
  await dispatcher.db.prisma.organization.create({ data: { id: otherOrganizationId, name: 'Other' } })
}, 120_000)
afterAll(async () => {
  await dispatcher.stop()
  await endpoint.close()
})
beforeEach(() => {
  endpoint.requests.length = 0
  endpoint.answerWith({ status: 204 })
})

const save = (change: Record<string, unknown>): Promise<string> =>
  saveTestSource(dispatcher, { endpoint_url: endpoint.url, ...change })

describe('the list', () => {
  test('holds every source that is not deleted, sorted by name in code point order, without secrets', async () => {
    for (const name of ['b', 'a', 'Z', 'é', 'aa']) await save({ name, signing_secret: `secret of ${name} ........` })
    const gone = await save({ name: 'gone' })
    await dispatcher.call('DELETE', dispatcher.sourcePath(gone))
    const { status, body } = await dispatcher.call('GET', listPath)
    expect(status).toBe(200)
    expect(body.data.map((source) => (source as unknown as { name: string }).name)).toEqual(['Z', 'a', 'aa', 'b', 'é'])
    expect(JSON.stringify(body)).not.toContain('secret of')
  })

  test('is empty for another organization, and for one that does not exist', async () => {
    for (const id of [otherOrganizationId, newId()]) {
      const answer = await dispatcher.call('GET', `/internal/organizations/${id}/webhook-sources`)
      expect(answer).toMatchObject({ status: 200, body: { data: [] } })
    }
  })
})

describe('one source', () => {
  test("is not found when it is unknown, deleted or another organization's, with the same answer", async () => {
    const mine = await save({})
    const deleted = await save({})
    await dispatcher.call('DELETE', dispatcher.sourcePath(deleted))
    const paths = [
      dispatcher.sourcePath(newId()),
      dispatcher.sourcePath(deleted),
      `/internal/organizations/${otherOrganizationId}/webhook-sources/${mine}`,
    ]
    for (const path of paths) {
      for (const [method, suffix] of [
        ['GET', ''],
        ['DELETE', ''],
        ['POST', '/test'],
      ] as const) {
        const answer = await dispatcher.call(method, `${path}${suffix}`)
        expect(answer).toMatchObject({
          status: 404,
          body: { error: { code: 'not_found', message: 'Webhook source not found.' } },
        })
      }
    }
    expect((await dispatcher.call('GET', dispatcher.sourcePath(mine))).status).toBe(200)
  })
})

describe('a deletion', () => {
  test('answers 204 without a body, forgets the secret, and leaves the log readable', async () => {
    const id = await save({ signing_secret: 'to be forgotten' })
    const answer = await dispatcher.call('DELETE', dispatcher.sourcePath(id))
    expect(answer).toMatchObject({ status: 204, body: null })
    const stored = await dispatcher.db.prisma.webhookSource.findUnique({ where: { id } })
    expect(stored).toMatchObject({ signingSecret: null, deletedAt: expect.any(Date) })
    const log = await dispatcher.call('GET', `${dispatcher.sourcePath(id)}/deliveries`)
    expect(log.body.data).toEqual([expect.objectContaining({ kind: 'verification', outcome: 'accepted' })])
  })
})

describe('a test', () => {
  test('verifies what is stored, with the stored secret, and renews the time of the verification', async () => {
    const id = await save({ signing_secret: 'the stored secret', example_request_body: { b: 1, a: [true] } })
    const before = (await dispatcher.call('GET', dispatcher.sourcePath(id))).body
    endpoint.requests.length = 0
    const answer = await dispatcher.call('POST', `${dispatcher.sourcePath(id)}/test`)
    expect(answer).toMatchObject({ status: 200, body: { kind: 'verification', outcome: 'accepted', status: 204 } })
    const [request, ...others] = endpoint.requests
    expect(others).toEqual([])
    expect(request?.json).toMatchObject({
      type: 'service.webhook.verification',
      source_id: id,
      data: { target_url: endpoint.url, signing_secret: 'the stored secret', body_example: { b: 1, a: [true] } },
    })
    expect(checkServiceToken(request?.headers['x-service-token'], 'the stored secret')).toMatchObject({ ok: true })
    const after = (await dispatcher.call('GET', dispatcher.sourcePath(id))).body
    expect({ ...after, verified_at: null }).toEqual({ ...before, verified_at: null })
    expect(Date.parse(after.verified_at ?? '')).toBeGreaterThanOrEqual(Date.parse(before.verified_at ?? ''))
  })

  test('tells the outcome of an endpoint that does not confirm, and changes nothing', async () => {
    const id = await save({})
    const before = (await dispatcher.call('GET', dispatcher.sourcePath(id))).body
    endpoint.answerWith({ status: 500 })
    const answer = await dispatcher.call('POST', `${dispatcher.sourcePath(id)}/test`)
    expect(answer).toMatchObject({
      status: 200,
      body: { outcome: 'rejected', status: 500, reason: 'The endpoint answered 500.' },
    })
    expect((await dispatcher.call('GET', dispatcher.sourcePath(id))).body).toEqual(before)
    const log = await dispatcher.call('GET', `${dispatcher.sourcePath(id)}/deliveries?limit=1`)
    expect(log.body.data).toEqual([answer.body])
  })

  test('says that a secret which no key opens must be entered anew, and sends nothing', async () => {
    const id = await save({ signing_secret: 'sealed for good' })
    const damaged = Buffer.from(
      (await dispatcher.db.prisma.webhookSource.findUnique({ where: { id } }))?.signingSecret ?? [],
    )
    damaged[damaged.length - 1]! ^= 1
    await dispatcher.db.prisma.webhookSource.update({ where: { id }, data: { signingSecret: damaged } })
    endpoint.requests.length = 0
    const answer = await dispatcher.call('POST', `${dispatcher.sourcePath(id)}/test`)
    expect(answer).toMatchObject({ status: 422, body: { error: { details: [{ field: 'signing_secret' }] } } })
    expect(endpoint.requests).toEqual([])
  })
})
