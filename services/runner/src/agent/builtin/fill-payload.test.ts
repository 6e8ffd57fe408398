import { describe, expect, test } from '@jest/globals'
import type { ContextObject } from '@workflow-service/rules/convert-value'
import * as fc from 'fast-check'
import { fillPayload } from './fill-payload.ts'
import { readContext } from './read-context.ts'

/** The payload, or the fields without a value and those whose value cannot be used. */
function fill(example: Record<string, unknown>, context: unknown): unknown {
  const text = typeof context === 'string' ? context : JSON.stringify(context)
  const { payload, missing, unusable } = fillPayload(example, readContext(text))
  return missing.length + unusable.length === 0 ? payload : [...missing, ...unusable.map(({ field }) => `${field}!`)]
}

describe('a payload from JSON', () => {
  test.each([
    ['the exact path', { id: 1 }, { ID: 2, id: 3, Id: 4 }, { id: 3 }],
    ['another case', { order_id: 'A' }, { orderId: 'B' }, { order_id: 'B' }],
    ['other separators', { orderId: 'A' }, { 'Order ID': 'B' }, { orderId: 'B' }],
    ['other accents', { prenom: 'A', número: 1 }, { Prénom: 'B', numero: 2 }, { prenom: 'B', número: 2 }],
    ['two names with equal values', { a_b: 1 }, { aB: 2, 'A-B': 2 }, { a_b: 2 }],
    ['a nested path', { c: { name: 'A' } }, { name: 'X', c: { name: 'B', x: 1 } }, { c: { name: 'B' } }],
    ['the items of a list', { l: [{ a: 1 }] }, { l: [{ a: 2 }, { A: '3' }] }, { l: [{ a: 2 }, { a: 3 }] }],
    ['an empty text', { note: 'A' }, { note: '' }, { note: '' }],
    ['an empty list', { l: [{ a: 1 }] }, { l: [] }, { l: [] }],
    ['null where the example has it', { a: null, b: null }, { a: 5 }, { a: 5, b: null }],
    [
      'what only some items of the example have',
      { l: [{ a: 1, b: 1 }, { a: 1 }] },
      { l: [{ a: 2 }] },
      { l: [{ a: 2 }] },
    ],
    [
      'nothing for null where the example need not have a field',
      { l: [{ a: 1, b: 1, c: { d: 1 } }, { a: 1 }] },
      { l: [{ a: 2, b: null, C: null }] },
      { l: [{ a: 2 }] },
    ],
    ['anything in an object without fields', { o: {} }, { o: { x: [1, null] } }, { o: { x: [1, null] } }],
    ['texts that convert', { n: 1, b: true }, { n: '-3.50', b: 'YES' }, { n: -3.5, b: true }],
    ['a date for a date', { d: '2026-01-31' }, { d: '2026-02-01T10:00:00Z' }, { d: '2026-02-01T10:00:00Z' }],
  ])('has the value at %s', (_what, example, context, payload) => {
    expect(fill(example, context)).toEqual(payload)
  })

  test.each([
    ['is under another path', { amount: 1 }, { amount: { value: 2 } }, ['amount!']],
    ['is in an envelope', { id: 'A' }, { data: { id: 'B' } }, ['id']],
    ['is under another name', { quantity: 1, note: 'A' }, { Quantitiy: 5, notes: 'B' }, ['quantity', 'note']],
    ['is missing in an object that is missing', { c: { name: 'A', x: null } }, {}, ['c.name']],
    ['is missing in an item', { l: [{ a: 1, b: 1 }] }, { l: [{ a: 2 }] }, ['l.0.b']],
    ['has a sign that makes it another', { id: 'A', type: 'A' }, { $id: '1', '@type': 'B' }, ['id', 'type']],
    ['has another number in its name', { q12: 'A' }, { 'Q1.2': 'B' }, ['q12']],
    ['is null', { a: 'A', l: [1] }, { a: null, l: null }, ['a', 'l']],
    ['has two names with different values', { a_b: 1 }, { aB: 2, 'A-B': 3 }, ['a_b!']],
    ['is that of one of two fields', { a_b: 1, aB: 2 }, { 'a-b': 3 }, ['a_b!', 'aB!']],
    ['has another type', { a: 'A', b: 1, c: true, d: [1] }, { a: 5, b: true, c: 1, d: 5 }, ['a!', 'b!', 'c!', 'd!']],
    ['loses digits', { a: 1, b: null }, '{"a": 12345678901234567890, "b": 0.12345678901234567890}', ['a!', 'b!']],
    ['is in a list as a whole', { a: 1 }, [{ a: 2 }], ['a', 'the context!']],
    ['is in a list, and may be null', { a: null }, [{ a: 2 }], ['the context!']],
    ['is in a list, and may be any', {}, [{ a: 2 }], ['the context!']],
  ])('is refused if a value %s', (_what, example, context, fields) => {
    expect(fill(example, context)).toEqual(fields)
  })

  test('says of a boolean that it is no number where the example has one', () => {
    expect(fillPayload({ n: 1 }, readContext('{"n": true}')).unusable).toEqual([
      { field: 'n', reason: 'true is no number such as 12 or -3.50' },
    ])
  })

  test('has every value of any JSON whose paths are those of the example', () => {
    const value = fc.object({
      maxDepth: 4,
      values: [fc.string(), fc.integer(), fc.boolean(), fc.double({ noInteger: true }), fc.constant(null)],
    })
    fc.assert(
      fc.property(value, (any) => {
        const json = JSON.parse(JSON.stringify(any)) as Record<string, unknown>
        delete json['__proto__']
        expect(fill(json, json)).toEqual(json)
      }),
      { seed: 1, numRuns: 1_000 },
    )
  })
})

describe('a payload from lines', () => {
  test.each([
    [
      'names in any spelling',
      { order_id: 'A', total: 1 },
      'Order ID: B-7\r\n\r\nTOTAL：12',
      { order_id: 'B-7', total: 12 },
    ],
    ['whole paths', { c: { name: 'A' }, name: 'A' }, 'C Name: B\nname: C', { c: { name: 'B' }, name: 'C' }],
    ['a colon in the value', { url: 'A' }, 'url: https://a.test: 5', { url: 'https://a.test: 5' }],
    ['a list in JSON', { l: [{ a: 1 }], t: ['x'] }, 'l: [{"a": 2}]\nt: ["y", "z"]', { l: [{ a: 2 }], t: ['y', 'z'] }],
    ['the same line twice', { a: 1 }, 'a: 2\nA: 2', { a: 2 }],
    ['null for a name without a value', { a: null, b: 1 }, 'a:\nb: 2', { a: null, b: 2 }],
    [
      'names with the marks of forms',
      { name: 'A', alergias: 'A', '№': 1 },
      'Name*: B\n¿Alergias? * : C\n№: 2',
      { name: 'B', alergias: 'C', '№': 2 },
    ],
    [
      'names with units',
      { weight_kg: 1, 'Size [m²]': 'A' },
      'Weight [kg]: 2\nSize [m²] : 3',
      { weight_kg: 2, 'Size [m²]': '3' },
    ],
    [
      'names with numbers and signs',
      { q1_2: 'A', q12: 'B', é1_2: 'A', '@type': 'A', $id: 'A' },
      'Q1.2: C\nQ - 12 : D\nÉ 1 - 2: G\n@Type: E\n$ID: F',
      { q1_2: 'C', q12: 'D', é1_2: 'G', '@type': 'E', $id: 'F' },
    ],
    ['names in other scripts', { 注文番号: 'A', Größe: 1 }, '注文番号：B\ngröße: 2', { 注文番号: 'B', Größe: 2 }],
    ['names with ß and with ss', { Masse: 1, Maße: 'A' }, 'Masse: 5\nMaße: 3x4', { Masse: 5, Maße: '3x4' }],
    ['names in upper case', { Straße: 'A', οδός_α: 'A' }, 'STRAẞE: B\nΟΔΌΣ Α: C', { Straße: 'B', οδός_α: 'C' }],
  ])('has the values of %s', (_what, example, context, payload) => {
    expect(fill(example, context)).toEqual(payload)
  })

  test.each([
    [
      'has a name without a value',
      { note: 'A', total: 1, paid: true },
      'note:\ntotal: \npaid:',
      ['note', 'total', 'paid'],
    ],
    ['has only the last name of a path', { c: { name: 'A' } }, 'name: B', ['c.name']],
    ['has two different values', { a: 1 }, 'a: 2\nA: 3', ['a!']],
    ['is that of two fields', { c: { name: 'A' }, c_name: 'A' }, 'c_name: B', ['c.name!', 'c_name!']],
    ['has another letter', { か: 'A', l: 'A' }, 'が: B\nł: C', ['か', 'l']],
  ])('is refused if it %s', (_what, example, context, fields) => {
    expect(fill(example, context)).toEqual(fields)
  })

  test.each(['1,234', '12 pcs', '€12', '+5', '007', '1e3', '.5', '5.', '１２', 'five'])(
    'has no number from %j',
    (text) => {
      expect(fill({ n: 1 }, `n: ${text}`)).toEqual(['n!'])
    },
  )

  test.each(['2026-02-29', '2026-13-01T10:00Z', '2026-01-31T24:30Z', '2026-01-31 10:60'])(
    'has no date from %j',
    (text) => {
      expect(fill({ d: '2026-01-31' }, `d: ${text}`)).toEqual(['d!'])
    },
  )

  test.each(['2028-02-29', '2026-01-31 23:59:60', '2026-01-31T10:00+0100'])('has the date %j', (text) => {
    expect(fill({ d: '2026-01-31' }, `d: ${text}`)).toEqual({ d: text })
  })

  test.each(['ja', 'on', '1', 'y', 'true!', 'oui'])('has no boolean from %j', (text) => {
    expect(fill({ b: true }, `b: ${text}`)).toEqual(['b!'])
  })
})

test('a list that makes a payload too large is refused before any item of it is filled', () => {
  const example = { items: [Object.fromEntries(Array.from({ length: 400 }, (_, n) => [`field_${n}`, null]))] }
  let searched = 0
  const item = new Proxy({}, { ownKeys: () => ((searched += 1), []) })
  const context = { json: { items: Array.from({ length: 51 }, (): ContextObject => item) } }
  expect(() => fillPayload(example, context)).toThrow(expect.objectContaining({ code: 'delivery_invalid' }))
  expect(searched).toBe(0)
})

describe('a context', () => {
  test.each([
    ['Hello\na: 1', 'line 1 of the context is no "name: value": "Hello"'],
    ['a: 1\n\n- b: 2', 'line 3'],
    ['a: 1\n**b:** 2', 'line 2'],
    ['a: 1\nSee [b](c): 2', 'line 2'],
    ['a: 1\nNote *b*: 2', 'line 2'],
    ['a: 1\nNote**: 2', 'line 2'],
    ['a: 1\nb[0: 2', 'line 2'],
    ['a: 1\n"b": 2', 'line 2'],
    ['a: 1\n: 2', 'line 2'],
    ['{"a": True}', 'line 1 of the context begins like JSON'],
    [
      '{"a": 1',
      'line 1 of the context is no JSON from character 8 on, although the context begins like it: "{\\"a\\": 1"',
    ],
    [
      '{\r\n "a": 1,\r\n}',
      'line 3 of the context is no JSON from character 1 on, although the context begins like it: "}"',
    ],
    [
      `{"a": "${'x'.repeat(500)}", "b" 5}`,
      `on, although the context begins like it: "${'x'.repeat(93)}\\", \\"b\\" 5}"`,
    ],
    ['{"a": 1} and 5', 'line 1'],
    ['```json\n{"a": 1}\n```', 'line 1'],
    ['5', 'line 1'],
  ])('that is neither JSON nor lines needs a model, and says which line: %j', (text, message) => {
    expect(() => readContext(text)).toThrow(
      expect.objectContaining({ code: 'needs_a_model', message: expect.stringContaining(message) }),
    )
  })

  test.each(['{"a": 1, "a": 2}', '{"x": [{"b": "a:", "b": ["\\"b\\":"]}]}', '{"a\\u0062": 1, "ab": 1}'])(
    'that has a name twice in an object is refused: %s',
    (text) => {
      expect(() => readContext(text)).toThrow(expect.objectContaining({ code: 'payload_incomplete' }))
    },
  )

  test.each([
    '['.repeat(10_000),
    '{"a":'.repeat(2_000),
    'a'.repeat(10_000),
    `a${' '.repeat(9_998)}:`,
    'a[b]'.repeat(2_500),
    'a[b'.repeat(3_000),
  ])('of the largest size is refused in time: %.20s', (text) => {
    const before = process.threadCpuUsage()
    expect(() => readContext(text)).toThrow(expect.objectContaining({ code: 'needs_a_model' }))
    expect(process.threadCpuUsage(before).user).toBeLessThan(200_000)
  })

  test('that gives one name 10,000 values is read in time', () => {
    const text = Array.from({ length: 10_000 }, (_, value) => `a: ${value}`).join('\n')
    const before = process.threadCpuUsage()
    readContext(text)
    expect(process.threadCpuUsage(before).user).toBeLessThan(200_000)
  })
})
