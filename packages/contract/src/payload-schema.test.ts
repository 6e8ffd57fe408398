import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { ajv } from './ajv.ts'
import {
  describeMismatches,
  exampleErrors,
  PAYLOAD_MAX_DEPTH,
  payloadMismatches,
  payloadSchemaFor,
} from './payload-schema.ts'

function fieldSchema(example: unknown): unknown {
  return (payloadSchemaFor({ field: example })['properties'] as { field: unknown }).field
}

function isAccepted(example: unknown, value: unknown): boolean {
  return payloadMismatches({ field: example }, { field: value }).length === 0
}

function nested(levels: number): Record<string, unknown> {
  return levels === 1 ? {} : { inner: nested(levels - 1) }
}

describe('the schema of a payload', () => {
  const whole = { type: 'number', description: 'A whole number in the example.' }

  test.each([
    ['a string', 'A-1', { type: 'string' }],
    ['a date, which stays a string', '2026-01-31', { type: 'string' }],
    ['a whole number: any number, with a hint', 3, whole],
    ['a number with a fraction', 9.5, { type: 'number' }],
    ['a boolean', false, { type: 'boolean' }],
    ['null: anything', null, {}],
    ['an empty object: any fields', {}, { type: 'object', properties: {}, additionalProperties: true }],
    [
      'an object: exactly its fields',
      { a: 1 },
      { type: 'object', properties: { a: whole }, required: ['a'], additionalProperties: false },
    ],
    ['a list', ['x', 'y'], { type: 'array', items: { type: 'string' } }],
    ['an empty list: anything in it', [], { type: 'array', items: {} }],
    ['a list of nulls: anything in it', [null, null], { type: 'array', items: {} }],
    [
      'a mixed list: any of its types',
      ['x', 1, true],
      { type: 'array', items: { type: ['string', 'number', 'boolean'] } },
    ],
    ['whole numbers beside fractions: numbers', [1, 2.5], { type: 'array', items: { type: 'number' } }],
    ['a list with nulls: the type or null', ['x', null], { type: 'array', items: { type: ['string', 'null'] } }],
    ['a list of lists', [[1], [], [2.5]], { type: 'array', items: { type: 'array', items: { type: 'number' } } }],
    [
      'a list of scalars and objects',
      ['x', { a: 1 }],
      {
        type: 'array',
        items: {
          anyOf: [
            { type: 'object', properties: { a: whole }, required: ['a'], additionalProperties: false },
            { type: 'string' },
          ],
        },
      },
    ],
    [
      'a list of objects: a field that not all have is optional',
      [{ a: 1, b: 'x' }, { a: 1.5 }],
      {
        type: 'array',
        items: {
          type: 'object',
          properties: { a: { type: 'number' }, b: { type: 'string' } },
          required: ['a'],
          additionalProperties: false,
        },
      },
    ],
  ])('says what becomes of %s', (_what, example, schema) => {
    expect(fieldSchema(example)).toEqual(schema)
  })

  test('lets a field that is null in one item and a string in another be both', () => {
    expect(isAccepted([{ a: null }, { a: 'x' }], [{ a: 'y' }, { a: null }])).toBe(true)
    expect(isAccepted([{ a: null }, { a: 'x' }], [{ a: 1 }])).toBe(false)
  })

  test('lets a fraction stand for a whole number, and the other way round', () => {
    expect(isAccepted(10, 12.5)).toBe(true)
    expect(isAccepted(12.5, 10)).toBe(true)
    expect(isAccepted([1, 'x'], [1.5])).toBe(true)
  })

  test('takes field names that every object inherits for ordinary names', () => {
    const example = { constructor: 'Ferrari', toString: 1, hasOwnProperty: true }
    expect(payloadMismatches(example, { constructor: 'Lotus', toString: 2, hasOwnProperty: false })).toEqual([])
    expect(payloadMismatches(example, {}).map(({ field, code }) => [field, code])).toEqual([
      ['constructor', 'missing'],
      ['toString', 'missing'],
      ['hasOwnProperty', 'missing'],
    ])
    expect(payloadMismatches({ a: 1 }, { a: 1, constructor: 1 })).toMatchObject([{ field: 'constructor' }])
  })
})

describe('a payload is refused', () => {
  const example = { order: { id: 'A-1', paid: true }, lines: [{ sku: 'S', price: 9.5, count: 1 }], note: null }

  test('with the path of every mismatch and words that say what to do', () => {
    const payload = { order: { id: 7 }, lines: [{ sku: 'S', price: '9.50', count: true, colour: 'red' }], note: 'ok' }
    expect(payloadMismatches(example, payload)).toEqual([
      { field: 'order.id', code: 'string_type', message: 'must be a string, not a number' },
      { field: 'order.paid', code: 'missing', message: 'is required: true or false' },
      { field: 'lines.0.price', code: 'float_type', message: 'must be a number, not a string' },
      { field: 'lines.0.count', code: 'float_type', message: 'must be a number, not true' },
      {
        field: 'lines.0.colour',
        code: 'extra_forbidden',
        message: 'is not in the example; the fields here are "sku", "price", "count"',
      },
    ])
  })

  test('also told as one text', () => {
    expect(describeMismatches(payloadMismatches({ a: 1, b: 'x' }, { a: 'x', b: 'x', c: 1 }))).toBe(
      'The payload does not follow the example request body. a: must be a number, not a string; c: is not in the ' +
        'example; the fields here are "a", "b"',
    )
  })

  test.each([[[]], ['text'], [null], [1], [undefined]])('when it is %j and no object', (payload) => {
    expect(payloadMismatches(example, payload)).toMatchObject([{ field: 'body', code: 'dict_type' }])
  })

  test('when a type that is null only in the payload does not fit', () => {
    expect(isAccepted('x', null)).toBe(false)
    expect(isAccepted({ a: 1 }, null)).toBe(false)
    expect(isAccepted([1], null)).toBe(false)
    expect(isAccepted([1], {})).toBe(false)
    expect(isAccepted({ a: 1 }, [])).toBe(false)
  })

  test('when a number is none that JSON can hold', () => {
    expect(isAccepted(1.5, 1e308 * 10)).toBe(false)
    expect(isAccepted(null, Number.NaN)).toBe(false)
  })

  test('when a text or a free field name holds NUL or a lone surrogate, wherever it stands', () => {
    for (const bad of ['a\u0000b', '\ud800']) {
      expect(payloadMismatches({ a: 'x' }, { a: bad })).toMatchObject([{ field: 'a', code: 'string_unicode' }])
      expect(payloadMismatches({ a: null }, { a: { b: [bad] } })).toMatchObject([{ field: 'a.b.0' }])
      expect(payloadMismatches({ a: {} }, { a: { [bad]: 1 } })).toMatchObject([{ code: 'string_unicode' }])
    }
  })

  test('when it names __proto__, and nothing inherits from it', () => {
    const payload = JSON.parse('{"a": {"__proto__": {"isAdmin": true}}}') as Record<string, unknown>
    expect(payloadMismatches({ a: {} }, payload)).toMatchObject([{ field: 'a.__proto__', code: 'reserved_name' }])
    expect(payloadMismatches({ a: { b: 1 } }, payload).map(({ code }) => code)).toEqual(['missing', 'extra_forbidden'])
    const poisoned = JSON.parse('{"__proto__": {"a": 1}, "b": 1}') as Record<string, unknown>
    expect(payloadSchemaFor(poisoned)['required']).toEqual(['b'])
  })

  test('when it nests too deep, without overflowing the stack', () => {
    expect(payloadMismatches({}, nested(PAYLOAD_MAX_DEPTH))).toEqual([])
    expect(payloadMismatches({}, nested(PAYLOAD_MAX_DEPTH + 1))).toMatchObject([{ code: 'too_deep' }])
    const deep = JSON.parse(`{"a":${'['.repeat(40_000)}${']'.repeat(40_000)}}`) as Record<string, unknown>
    expect(payloadMismatches({ a: null }, deep)).toMatchObject([{ code: 'too_deep' }])
    expect(payloadMismatches(deep, deep)).toMatchObject([{ code: 'too_deep' }])
    expect(() => JSON.stringify(payloadSchemaFor(deep))).not.toThrow()
  })

  test('when a receiver would take it for a verification request', () => {
    const type = 'service.webhook.verification'
    expect(payloadMismatches({ type: 'x' }, { type })).toMatchObject([{ field: 'type', code: 'reserved_value' }])
    expect(payloadMismatches({}, { type })).toMatchObject([{ field: 'type', code: 'reserved_value' }])
    expect(payloadMismatches({ inner: { type: 'x' } }, { inner: { type } })).toEqual([])
  })

  test('with 20 mismatches at most', () => {
    expect(payloadMismatches({ a: [1] }, { a: Array.from({ length: 1_000 }, () => 'x') })).toHaveLength(20)
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`field_${index}`, 'x']))
    expect(payloadMismatches({ a: 1 }, many)).toHaveLength(20)
    expect(payloadMismatches(many, {})).toHaveLength(20)
  })
})

describe('an example is refused', () => {
  test.each([[[]], ['text'], [null], [undefined]])('when it is %j and no object', (example) => {
    expect(exampleErrors(example)).toEqual([
      { field: 'example_request_body', code: 'dict_type', message: 'must be a JSON object' },
    ])
  })

  test('when it would pass for a verification request', () => {
    expect(exampleErrors({ type: 'service.webhook.verification' })).toMatchObject([
      { field: 'example_request_body.type', code: 'reserved_value' },
    ])
  })

  test('when it is too deep, names __proto__ or holds text that no database does', () => {
    expect(exampleErrors(nested(PAYLOAD_MAX_DEPTH))).toEqual([])
    expect(exampleErrors(nested(PAYLOAD_MAX_DEPTH + 1))).toMatchObject([{ code: 'too_deep' }])
    expect(exampleErrors(JSON.parse('{"a":[{"__proto__":1}]}'), 'example')).toMatchObject([
      { field: 'example.a.0.__proto__', code: 'reserved_name' },
    ])
    expect(exampleErrors({ a: '\u0000' })).toMatchObject([{ field: 'example_request_body.a', code: 'string_unicode' }])
  })
})

describe('for any example', () => {
  test('the example itself is a payload that follows it', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: true }), (example) => {
        fc.pre(exampleErrors(example).length === 0)
        expect(payloadMismatches(example, example)).toEqual([])
      }),
    )
  })

  test('the check and the schema judge every payload alike', () => {
    // Few names and values, so that payloads that follow the example are as common as those that do not.
    const { object } = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom('x', 1, 1.5, true, null),
        fc.array(tie('value'), { maxLength: 2 }),
        tie('object'),
      ),
      object: fc.dictionary(fc.constantFrom('a', 'b'), tie('value'), { noNullPrototype: true }),
    }))
    const seen = { accepted: 0, refused: 0 }
    fc.assert(
      fc.property(object, object, (example, payload) => {
        const schema = payloadSchemaFor(example)
        const isAcceptable = ajv.compile(schema)(payload)
        ajv.removeSchema(schema)
        seen[isAcceptable ? 'accepted' : 'refused'] += 1
        expect(payloadMismatches(example, payload).length === 0).toBe(isAcceptable)
      }),
      { numRuns: 200 },
    )
    expect(seen.accepted).toBeGreaterThan(0)
    expect(seen.refused).toBeGreaterThan(0)
  })
})
