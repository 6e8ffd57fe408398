import { beforeAll, describe, expect, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { checkServiceToken } from '@workflow-service/webhook-token'
import { sourcePath } from './support/test-dispatcher.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const dispatcher = useDispatcher()
let otherOrganizationId: string

beforeAll(async () => {
  otherOrganizationId = await dispatcher.createOrganization()
})

const listPath = (organizationId: string): string => sourcePath(organizationId, '').slice(0, -1)

describe('the list of sources', () => {
  test('has every source that is not deleted, sorted by name in code point order, without secrets', async () => {
    for (const name of ['b', 'a', 'Z', 'é', 'aa']) {
      await dispatcher.saveSource({ name, signing_secret: `secret of ${name} ........` })
    }
    const deleted = await dispatcher.saveSource({ name: 'deleted' })
    await dispatcher.call('DELETE', dispatcher.sourcePath(deleted))
    const { status, body } = await dispatcher.call('GET', listPath(dispatcher.organizationId))
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
      ] as const) {
        const answer = await dispatcher.call(method, `${path}${suffix}`)
        expect(answer).toMatchObject({
          status: 404,
          body: { error: { code: 'not_found', message: 'Webhook source not found.' } },
        })
      }
    }
    expect((await dispatcher.readSource(own)).status).toBe(200)
  })
})

describe('a deletion', () => {
  test('answers 204 without a body, deletes the secret, and keeps the log readable', async () => {
    const id = await dispatcher.saveSource({ signing_secret: 'to be deleted' })
    const answer = await dispatcher.call('DELETE', dispatcher.sourcePath(id))
    expect(answer).toMatchObject({ status: 204, body: null })
    const stored = await dispatcher.db.prisma.webhookSource.findUnique({ where: { id } })
    expect(stored).toMatchObject({ signingSecret: null, deletedAt: expect.any(Date) })
    const log = await dispatcher.call('GET', `${dispatcher.sourcePath(id)}/deliveries`)
    expect(log.body.data).toEqual([expect.objectContaining({ kind: 'verification', outcome: 'accepted' })])
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
    const answer = await dispatcher.call('POST', `${dispatcher.sourcePath(id)}/test`)
    expect(answer).toMatchObject({ status: 200, body: { kind: 'verification', outcome: 'accepted', status: 204 } })
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
    expect(checkServiceToken(request?.headers['x-service-token'], 'the stored secret')).toMatchObject({ ok: true })
    const after = (await dispatcher.readSource(id)).body
    expect({ ...after, verified_at: null }).toEqual({ ...before, verified_at: null })
    expect(Date.parse(after.verified_at ?? '')).toBeGreaterThanOrEqual(Date.parse(before.verified_at ?? ''))
  })

  test('answers the outcome of an endpoint that does not confirm, and changes nothing', async () => {
    const id = await dispatcher.saveSource()
    const before = (await dispatcher.readSource(id)).body
    dispatcher.endpoint.answerWith({ status: 500 })
    const answer = await dispatcher.call('POST', `${dispatcher.sourcePath(id)}/test`)
    expect(answer).toMatchObject({
      status: 200,
      body: { outcome: 'rejected', status: 500, reason: 'The endpoint answered 500.' },
    })
    expect((await dispatcher.readSource(id)).body).toEqual(before)
    const log = await dispatcher.call('GET', `${dispatcher.sourcePath(id)}/deliveries?limit=1`)
    expect(log.body.data).toEqual([answer.body])
  })

  test('answers 422 and sends nothing if no key decrypts the stored secret', async () => {
    const id = await dispatcher.saveSource({ signing_secret: 'to be damaged' })
    const stored = await dispatcher.db.prisma.webhookSource.findUnique({ where: { id } })
    const damaged = Buffer.from(stored?.signingSecret ?? [])
    damaged[damaged.length - 1]! ^= 1
    await dispatcher.db.prisma.webhookSource.update({ where: { id }, data: { signingSecret: damaged } })
    dispatcher.endpoint.requests.length = 0
    const answer = await dispatcher.call('POST', `${dispatcher.sourcePath(id)}/test`)
    expect(answer).toMatchObject({ status: 422, body: { error: { details: [{ field: 'signing_secret' }] } } })
    expect(dispatcher.endpoint.requests).toEqual([])
  })
})
