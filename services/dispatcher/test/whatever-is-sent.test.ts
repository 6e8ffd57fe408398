import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { compile, DeliveryOut, InternalErrorResponse, WebhookSourceOut } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { type CustomerEndpoint, startCustomerEndpoint } from '@workflow-service/testkit'
import * as fc from 'fast-check'
import { type Answer, startTestDispatcher, type TestDispatcher } from './support/test-dispatcher.ts'

const isSource = compile(WebhookSourceOut)
const isDelivery = compile(DeliveryOut)
const isError = compile(InternalErrorResponse)

let dispatcher: TestDispatcher
let endpoint: CustomerEndpoint

beforeAll(async () => {
  dispatcher = await startTestDispatcher()
  endpoint = await startCustomerEndpoint()
}, 120_000)
afterAll(async () => {
  await dispatcher.stop()
  await endpoint.close()
})

/** Text of every kind: NUL, lone surrogates, control characters, names that JavaScript knows. */
const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom(
    '__proto__',
    'constructor',
    'toString',
    'a\u0000b',
    '\ud800',
    '',
    'type',
    'service.webhook.verification',
  ),
)
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    text,
    fc.double(),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(text, tie('value'), { maxKeys: 4 }),
  ),
})).value
const object = fc.dictionary(text, json, { maxKeys: 5 })

const isAnswered = (answer: Answer, isGood: (body: unknown) => boolean): boolean =>
  answer.status < 400 ? isGood(answer.body) : isError(answer.body)

describe('whatever is sent', () => {
  test('to save: it is saved, or refused in the shape of an error, and never is it a fault of ours', async () => {
    const field = fc.option(json, { nil: undefined })
    const source = fc.record({
      name: fc.oneof(text, field),
      description: fc.oneof(text, field),
      endpoint_url: fc.oneof(fc.constant('http://127.0.0.1:9/'), fc.webUrl(), text, field),
      signing_secret: fc.oneof(text, field),
      example_request_body: fc.oneof(object, field),
    })
    await fc.assert(
      fc.asyncProperty(source, async (body) => {
        const answer = await dispatcher.call('PUT', `${dispatcher.sourcePath(newId())}?verify=never`, body)
        expect([201, 409, 422]).toContain(answer.status)
        expect(isAnswered(answer, isSource)).toBe(true)
      }),
      { numRuns: 100 },
    )
  }, 60_000)

  test('as example and as payload: there is an outcome, it is recorded, and what arrives is what was sent', async () => {
    await fc.assert(
      fc.asyncProperty(object, fc.oneof(object, fc.constant(undefined)), async (example, other) => {
        const sourceId = newId()
        const saved = await dispatcher.call('PUT', `${dispatcher.sourcePath(sourceId)}?verify=never`, {
          name: sourceId,
          description: '',
          endpoint_url: endpoint.url,
          example_request_body: example,
        })
        fc.pre(saved.status === 201)
        endpoint.requests.length = 0
        const payload: unknown = JSON.parse(JSON.stringify(other ?? example))
        const answer = await dispatcher.call('PUT', `/internal/deliveries/${newId()}`, {
          organization_id: dispatcher.organizationId,
          source_id: sourceId,
          payload,
        })
        expect(answer.status).toBe(200)
        expect(isDelivery(answer.body)).toBe(true)
        expect(['accepted', 'invalid']).toContain(answer.body.outcome)
        expect(endpoint.requests.map((request) => request.json)).toEqual(
          answer.body.outcome === 'accepted' ? [payload] : [],
        )
        const log = await dispatcher.call('GET', `${dispatcher.sourcePath(sourceId)}/deliveries`)
        expect(log.body.data).toEqual([answer.body])
      }),
      { numRuns: 60 },
    )
  }, 60_000)
})
