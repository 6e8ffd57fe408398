import { describe, expect, test } from '@jest/globals'
import { compile, DeliveryOut, InternalErrorResponse, WebhookSourceOut } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import * as fc from 'fast-check'
import { type Answer, sourceIn } from './support/test-dispatcher.ts'
import { useDispatcher } from './support/use-dispatcher.ts'

const dispatcher = useDispatcher()

const isSource = compile(WebhookSourceOut)
const isDelivery = compile(DeliveryOut)
const isError = compile(InternalErrorResponse)

/** Text of every kind: NUL, lone surrogates, control characters, names with a meaning in JavaScript. */
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

const hasValidBody = (answer: Answer, isSuccess: (body: unknown) => boolean): boolean =>
  answer.status < 400 ? isSuccess(answer.body) : isError(answer.body)

describe('arbitrary input', () => {
  test('to a save is saved or refused with an error of the contract, never with a 500', async () => {
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
        expect(hasValidBody(answer, isSource)).toBe(true)
      }),
      { seed: 1, numRuns: 100 },
    )
  }, 60_000)

  test('as example and payload has a recorded outcome, and the endpoint receives exactly the payload', async () => {
    await fc.assert(
      fc.asyncProperty(object, fc.oneof(object, fc.constant(undefined)), async (example, other) => {
        const sourceId = newId()
        const saved = await dispatcher.call(
          'PUT',
          `${dispatcher.sourcePath(sourceId)}?verify=never`,
          sourceIn({ endpoint_url: dispatcher.endpoint.url, example_request_body: example }),
        )
        fc.pre(saved.status === 201)
        dispatcher.endpoint.requests.length = 0
        const payload: unknown = JSON.parse(JSON.stringify(other ?? example))
        const answer = await dispatcher.send(newId(), { source_id: sourceId, payload })
        expect(answer.status).toBe(200)
        expect(isDelivery(answer.body)).toBe(true)
        expect(['accepted', 'invalid']).toContain(answer.body.outcome)
        expect(dispatcher.endpoint.requests.map((request) => request.json)).toEqual(
          answer.body.outcome === 'accepted' ? [payload] : [],
        )
        const log = await dispatcher.call('GET', `${dispatcher.sourcePath(sourceId)}/deliveries`)
        expect(log.body.data).toEqual([answer.body])
      }),
      { seed: 1, numRuns: 60 },
    )
  }, 60_000)
})
