import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { MISMATCHES_MAX_COUNT, PAYLOAD_MAX_DEPTH, PAYLOAD_MAX_VALUES } from '../limits.ts'
import { ajv } from './ajv.ts'
import { findExampleErrors } from './check-json-value.ts'
import { describeMismatches, findPayloadMismatches } from './payload-mismatches.ts'
import { derivePayloadSchema } from './payload-schema.ts'

function nest(levels: number): Record<string, unknown> {
  return levels === 1 ? {} : { inner: nest(levels - 1) }
}

describe('findPayloadMismatches', () => {
  const example = { order: { id: 'A-1', paid: true }, lines: [{ sku: 'S', price: 9.5, count: 1 }], note: null }

  test('reports the path of every mismatch and how to correct it', () => {
    const payload = { order: { id: 7 }, lines: [{ sku: 'S', price: '9.50', count: true, colour: 'red' }], note: 'ok' }
    expect(findPayloadMismatches(example, payload)).toEqual([
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

  test.each([[[]], ['text'], [null], [1], [undefined]])('refuses %j, which is not an object', (payload) => {
    expect(findPayloadMismatches(example, payload)).toMatchObject([{ field: 'body', code: 'dict_type' }])
  })

  test('treats field names that every object inherits as ordinary names', () => {
    const inherited = { constructor: 'Ferrari', toString: 1, hasOwnProperty: true }
    expect(findPayloadMismatches(inherited, { constructor: 'Lotus', toString: 2, hasOwnProperty: false })).toEqual([])
    const missing = Object.keys(inherited).map((field) => ({ field, code: 'missing' }))
    expect(findPayloadMismatches(inherited, {})).toMatchObject(missing)
    expect(findPayloadMismatches({ a: 1 }, { a: 1, constructor: 1 })).toMatchObject([{ field: 'constructor' }])
  })

  test('refuses numbers that JSON cannot represent', () => {
    expect(findPayloadMismatches({ a: 1.5 }, { a: 1e308 * 10 })).toHaveLength(1)
    expect(findPayloadMismatches({ a: null }, { a: Number.NaN })).toHaveLength(1)
  })

  test.each(['a\u0000b', '\ud800'])('refuses the text %j in values and names, at any depth', (text) => {
    expect(findPayloadMismatches({ a: 'x' }, { a: text })).toMatchObject([{ field: 'a', code: 'string_unicode' }])
    expect(findPayloadMismatches({ a: null }, { a: { b: [text] } })).toMatchObject([{ field: 'a.b.0' }])
    expect(findPayloadMismatches({ a: {} }, { a: { [text]: 1 } })).toMatchObject([{ code: 'string_unicode' }])
  })

  test('refuses fields named __proto__', () => {
    const payload = JSON.parse('{"a": {"__proto__": {"isAdmin": true}}}') as Record<string, unknown>
    expect(findPayloadMismatches({ a: {} }, payload)).toMatchObject([{ field: 'a.__proto__', code: 'reserved_name' }])
    const codes = findPayloadMismatches({ a: { b: 1 } }, payload).map(({ code }) => code)
    expect(codes).toEqual(['missing', 'extra_forbidden'])
  })

  test('refuses more than the maximum depth, without overflowing the stack', () => {
    expect(findPayloadMismatches({}, nest(PAYLOAD_MAX_DEPTH))).toEqual([])
    expect(findPayloadMismatches({}, nest(PAYLOAD_MAX_DEPTH + 1))).toMatchObject([{ code: 'too_deep' }])
    const deep = JSON.parse(`{"a":${'['.repeat(40_000)}${']'.repeat(40_000)}}`) as Record<string, unknown>
    expect(findPayloadMismatches({ a: null }, deep)).toMatchObject([{ code: 'too_deep' }])
    expect(findPayloadMismatches(deep, deep)).toMatchObject([{ code: 'too_deep' }])
  })

  test('refuses a payload that a receiver would take for a verification request', () => {
    const type = 'service.webhook.verification'
    expect(findPayloadMismatches({ type: 'x' }, { type })).toMatchObject([{ field: 'type', code: 'reserved_value' }])
    expect(findPayloadMismatches({}, { type })).toMatchObject([{ field: 'type', code: 'reserved_value' }])
    expect(findPayloadMismatches({ inner: { type: 'x' } }, { inner: { type } })).toEqual([])
  })

  test(`reports at most ${MISMATCHES_MAX_COUNT} mismatches`, () => {
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`field_${index}`, 'x']))
    const wrongItems = { a: Array.from({ length: 1_000 }, () => 'x') }
    expect(findPayloadMismatches({ a: [1] }, wrongItems)).toHaveLength(MISMATCHES_MAX_COUNT)
    expect(findPayloadMismatches({ a: 1 }, many)).toHaveLength(MISMATCHES_MAX_COUNT)
    expect(findPayloadMismatches(many, {})).toHaveLength(MISMATCHES_MAX_COUNT)
  })

  test('accepts the maximum number of values and refuses more, wherever they are', () => {
    // The body, the list, and its items.
    const longest = Array.from({ length: PAYLOAD_MAX_VALUES - 2 }, () => 1)
    const refusal = { field: 'body', code: 'too_large', message: 'must have at most 20,000 values in all; it has more' }
    for (const listExample of [{ a: [1] }, { a: null }, {}]) {
      expect(findPayloadMismatches(listExample, { a: longest })).toEqual([])
      expect(findPayloadMismatches(listExample, { a: [...longest, 1] })).toEqual([refusal])
    }
    expect(findPayloadMismatches({ a: [{ b: 1 }] }, { a: longest.map(() => ({ b: 1 })) })).toEqual([refusal])
  })

  test('reads no value beyond the maximum number', () => {
    let read = 0
    const item = {
      get b() {
        read += 1
        return 1
      },
    }
    const payload = { a: Array.from({ length: 3 * PAYLOAD_MAX_VALUES }, () => item) }
    findPayloadMismatches({ a: [{ b: 1 }] }, payload)
    expect(read).toBeLessThanOrEqual(PAYLOAD_MAX_VALUES)
  })

  test('looks for the fields of the payload, not for the optional ones of the example in each item', () => {
    let reads = 0
    const item = new Proxy(
      { field_7: 1 },
      {
        has: (target, name) => (reads++, Reflect.has(target, name)),
        get: (target, name) => (reads++, Reflect.get(target, name) as unknown),
        getOwnPropertyDescriptor: (target, name) => (reads++, Reflect.getOwnPropertyDescriptor(target, name)),
      },
    )
    const wide = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`field_${index}`, 1]))
    expect(findPayloadMismatches({ lines: [wide, {}] }, { lines: Array.from({ length: 100 }, () => item) })).toEqual([])
    expect(reads).toBeLessThanOrEqual(3 * 100)
  })

  test('lists at most 20 names of the example in a message, each shortened', () => {
    const fields = Array.from({ length: 500 }, (_, index) => [`${index}${'x'.repeat(1_000)}`, 1])
    const many = Object.fromEntries(fields)
    const mismatches = findPayloadMismatches({ a: many }, { a: { unknown: 1 } })
    expect(mismatches).toHaveLength(MISMATCHES_MAX_COUNT)
    expect(mismatches.at(-1)).toMatchObject({ code: 'missing' })
    const [extra] = findPayloadMismatches(many, { ...many, unknown: 1 })
    const message = expect.stringMatching(/ and 480 more$/)
    expect(extra).toMatchObject({ field: 'unknown', code: 'extra_forbidden', message })
    expect(extra?.message.length).toBeLessThan(2_200)
  })

  test('shortens long paths, in text that PostgreSQL can store', () => {
    const names = [`${'x'.repeat(499)}😀`, '😀'.repeat(400), 'a\u0000\ud800']
    for (const name of names) {
      const [mismatch] = findPayloadMismatches({ a: {} }, { a: { [name]: { [name]: '\u0000' } } })
      expect(mismatch?.field.length).toBeLessThanOrEqual(500)
      expect(mismatch?.field).toMatch(/^a\./)
      expect(mismatch?.field.isWellFormed()).toBe(true)
      expect(mismatch?.field).not.toContain('\u0000')
    }
  })

  test('accepts every valid example as its own payload', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: true }), (anyExample) => {
        fc.pre(findExampleErrors(anyExample).length === 0)
        expect(findPayloadMismatches(anyExample, anyExample)).toEqual([])
      }),
      { seed: 1, numRuns: 1_000 },
    )
  })

  test('accepts a payload exactly if the derived schema does', () => {
    // Few names and values, so that matching payloads are about as common as mismatching ones.
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
      fc.property(object, object, (anyExample, payload) => {
        const schema = derivePayloadSchema(anyExample)
        const isValid = ajv.compile(schema)(payload)
        ajv.removeSchema(schema)
        seen[isValid ? 'accepted' : 'refused'] += 1
        expect(findPayloadMismatches(anyExample, payload).length === 0).toBe(isValid)
      }),
      { seed: 1, numRuns: 200 },
    )
    expect(seen.accepted).toBeGreaterThan(0)
    expect(seen.refused).toBeGreaterThan(0)
  })
})

test('describeMismatches formats all mismatches as one text', () => {
  expect(describeMismatches(findPayloadMismatches({ a: 1, b: 'x' }, { a: 'x', b: 'x', c: 1 }))).toBe(
    'The payload does not follow the example request body. a: must be a number, not a string; c: is not in the ' +
      'example; the fields here are "a", "b"',
  )
})
