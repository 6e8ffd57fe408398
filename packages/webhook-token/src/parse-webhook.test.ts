import { describe, expect, test } from '@jest/globals'
import { findPayloadMismatches } from '@workflow-service/contract'
import * as fc from 'fast-check'
import { parseEvent, type PayloadOf, parseWebhook, type Webhook } from './index.js'

const example = { order_id: 'X-0000', total: 0.5, lines: [{ sku: 'a', count: 1 }, { sku: 'b' }], note: null, meta: {} }
const payload = { order_id: 'A-1', total: 3, lines: [{ sku: 'c' }], note: [1], meta: { any: 'thing' } }

const verification = {
  type: 'service.webhook.verification',
  organization_id: 'o',
  source_id: 's',
  data: { target_url: 'https://a.test/', signing_secret: null, body_example: example },
}

function problemsOf(body: unknown) {
  const webhook = parseWebhook(body, example)
  return webhook.kind === 'invalid' ? webhook.problems : []
}

describe('parseWebhook', () => {
  test.each([
    ['parsed JSON', (body: unknown) => body],
    ['text', (body: unknown) => JSON.stringify(body)],
    ['a Buffer', (body: unknown) => Buffer.from(JSON.stringify(body))],
    ['an ArrayBuffer', (body: unknown) => new TextEncoder().encode(JSON.stringify(body)).buffer],
  ])('tells the verification from a payload, in %s', (_form, write) => {
    expect(parseWebhook(write(verification), example)).toEqual({ kind: 'verification', verification })
    expect(parseWebhook(write(payload), example)).toEqual({ kind: 'payload', payload })
    expect(parseWebhook(write({ ...payload, type: 'other' }), example)).toMatchObject({ kind: 'invalid' })
  })

  test('knows the events of runs from other notices', () => {
    for (const type of ['run.failed', 'run.cancelled', 'approval.waiting'])
      expect(parseEvent(JSON.stringify({ type, data: {} }))).toEqual({ type, data: {} })
    for (const body of ['{"type": "run.failed"}', '{"type": "notice.test", "data": {}}', '[]', '{', undefined])
      expect(parseEvent(body)).toBeUndefined()
  })

  test('lists what does not follow the example', () => {
    const changed = { order_id: 7, total: undefined, lines: [{ sku: 'c', count: '1' }], extra: 1 }
    expect(problemsOf(JSON.stringify({ ...payload, ...changed }))).toEqual([
      { field: 'order_id', code: 'string_type', message: 'must be a string, not a number' },
      { field: 'lines.0.count', code: 'float_type', message: 'must be a number, not a string' },
      { field: 'total', code: 'missing', message: 'is required: a number' },
      {
        field: 'extra',
        code: 'extra_forbidden',
        message: 'is not in the example; the fields here are order_id, total, lines, note, meta',
      },
    ])
    for (const [body, code] of [
      ['{', 'invalid_json'],
      ['', 'invalid_json'],
      [undefined, 'invalid_json'],
      [[], 'dict_type'],
      ['7', 'dict_type'],
      [null, 'dict_type'],
    ]) {
      expect(problemsOf(body)).toMatchObject([{ field: 'body', code }])
    }
  })

  test('throws if the example is not an object', () => {
    for (const none of [undefined, null, 'text', []]) {
      expect(() => parseWebhook({}, none as never)).toThrow('the example must be the JSON object')
    }
  })

  test('reads a large body with a large example in time, and lists 20 problems', () => {
    const large = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`field_${index}`, 'x']))
    const body = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`other_${index}`, index]))
    const startedAt = performance.now()
    expect(parseWebhook(body, large)).toMatchObject({ problems: { length: 20 } })
    expect(performance.now() - startedAt).toBeLessThan(500)
  })

  test('finds the same as the service, for any example and payload', () => {
    const key = fc.constantFrom('a', 'b', 'c', 'd')
    const scalar = fc.oneof(fc.constantFrom('x', 'y'), fc.integer(), fc.constant(0.5), fc.boolean(), fc.constant(null))
    const { value } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        scalar,
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(key, tie('value'), { maxKeys: 4, noNullPrototype: true }),
      ),
    }))
    const object = fc.dictionary(key, value, { maxKeys: 4, noNullPrototype: true })
    const outcomes = new Set<boolean>()
    const agree = (any: Record<string, unknown>, body: unknown): void => {
      const expected = findPayloadMismatches(any, body).map(({ field, code }) => `${field} ${code}`)
      // As text: a string would be read as JSON.
      const webhook = parseWebhook(JSON.stringify(body), any)
      const found = webhook.kind === 'invalid' ? webhook.problems.map(({ field, code }) => `${field} ${code}`) : []
      expect(found.toSorted()).toEqual(expected.toSorted())
      outcomes.add(expected.length === 0)
    }
    fc.assert(fc.property(object, value, agree), { seed: 1, numRuns: 500 })
    // An example is a payload of itself, and of few changes: this meets the valid side and its border.
    fc.assert(
      fc.property(object, (any) => agree(any, structuredClone(any))),
      { seed: 1 },
    )
    fc.assert(
      fc.property(object, key, value, (any, name, other) => agree(any, { ...any, [name]: other })),
      { seed: 1, numRuns: 500 },
    )
    expect(outcomes).toEqual(new Set([true, false]))
  })
})

// Compile-time test: the types of payloads follow the same rules.
type Equal<A, B> =
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- an uninstantiated T compares A and B exactly
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

interface Order {
  order_id: string
  total: number
  lines: { sku: string; count?: number }[]
  note: unknown
  meta: Record<string, unknown>
}

test('types a payload like its example', () => {
  const checks: [
    Equal<PayloadOf<typeof example>, Order>,
    Equal<PayloadOf<{ a: []; b: readonly [1, 'x', null]; c: true; d: null[] }>, Types>,
    Equal<PayloadOf<{ a: [{ x: 1; y: null }, { x: 's'; y: 2 }] }>, { a: { x: string | number; y: number | null }[] }>,
    Equal<Extract<Webhook, { kind: 'payload' }>['payload'], unknown> extends true ? false : true,
  ] = [true, true, true, true]
  const webhook = parseWebhook(payload, { order_id: 'X-0000', lines: [{ sku: 'a', count: 1 }, { sku: 'b' }] })
  const count = webhook.kind === 'payload' ? webhook.payload.lines[0]?.count?.toFixed(0) : 'none'
  expect([checks.length, count]).toEqual([4, 'none'])
})

interface Types {
  a: unknown[]
  b: (string | number | null)[]
  c: boolean
  d: unknown[]
}
