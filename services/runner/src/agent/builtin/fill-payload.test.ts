import { describe, expect, jest, test } from '@jest/globals'
import {
  findExampleErrors,
  findPayloadMismatches,
  PAYLOAD_MAX_BYTES,
  PAYLOAD_MAX_VALUES,
} from '@workflow-service/contract'
import * as fc from 'fast-check'
import { indexExample } from './example-index.ts'
import { fillPayload } from './fill-payload.ts'
import { FillState, PayloadTooLargeError } from './fill-state.ts'

function filled(example: Record<string, unknown>, context: unknown): Record<string, unknown> {
  return fillPayload(example, typeof context === 'string' ? context : JSON.stringify(context)).payload
}

describe('a payload is filled by name', () => {
  const example = { order_id: 'A-1', customer: { name: 'Eve', email: 'eve@example.com' }, total: 9.5, paid: true }

  test('from a JSON object with the structure of the example', () => {
    const context = { order_id: 'B-7', customer: { name: 'Ada', email: 'ada@acme.test' }, total: 42.5, paid: false }
    expect(filled(example, context)).toEqual(context)
  })

  test('from lines', () => {
    const context = 'Order ID: B-7\nCustomer name: Ada\ncustomer.email: ada@acme.test\nTotal: 42.50\nPaid: no'
    expect(filled(example, context)).toEqual({
      order_id: 'B-7',
      customer: { name: 'Ada', email: 'ada@acme.test' },
      total: 42.5,
      paid: false,
    })
  })

  test.each([['order_id'], ['orderId'], ['OrderID'], ['Order id'], ['ORDER-ID'], ['order.id']])(
    'however the name is written: %s',
    (name) => {
      expect(filled({ order_id: 'x' }, { [name]: 'B-7' })).toEqual({ order_id: 'B-7' })
      expect(filled({ [name]: 'x' }, { order_id: 'B-7' })).toEqual({ [name]: 'B-7' })
    },
  )

  test('from another path only if the name is unambiguous', () => {
    expect(filled({ customer: { email: 'x' } }, { email: 'ada@acme.test' })).toEqual({
      customer: { email: 'ada@acme.test' },
    })
    expect(filled({ email: 'x' }, { customer: { email: 'ada@acme.test' } })).toEqual({ email: 'ada@acme.test' })
    expect(filled({ customer_name: 'x' }, { customer: { name: 'Ada' } })).toEqual({ customer_name: 'Ada' })
    const twoNames = { customer: { name: 'x' }, product: { name: 'y' } }
    expect(filled(twoNames, { name: 'Ada' })).toEqual({ customer: { name: '' }, product: { name: '' } })
    expect(filled({ order: { id: 'x' } }, { customer: { id: 'C-1' } })).toEqual({ order: { id: '' } })
  })

  test.each([
    ['a list of one object', (order: object) => [order]],
    ['a named list of one object', (order: object) => ({ orders: [order] })],
  ])('from %s, with its parts', (_what, wrap) => {
    const order = { order_id: 'B-7', customer: { name: 'Ada' }, tags: ['web', 'vip'] }
    expect(filled({ order_id: 'x', customer: { name: 'y' }, tags: ['z'] }, wrap(order))).toEqual(order)
  })

  test.each([
    ['a form with bold labels', '**Name:** Ada\n**Message:** It stops.\n**May we call you?** No', 'Ada', 'It stops.'],
    ['an automatic footer', 'Name: Ada\nMessage: It stops.\n\nThis e-mail was sent automatically.', 'Ada', 'It stops.'],
    ['Japanese bullets', '・名前：彩\n・メッセージ：至急', '彩', '至急'],
  ])('from %s', (_what, context, name, message) => {
    expect(filled({ name: 'x', message: 'y' }, context)).toEqual({ name, message })
  })

  test('from blocks whose first name the example does not have', () => {
    const context = 'RMA: R1\nItem: Shoe\nSKU: T1\nQuantity: 1\nItem: Hat\nSKU: T2\nQuantity: 2'
    expect(filled({ rma: 'x', items: [{ sku: 'y', quantity: 1 }] }, context)).toEqual({
      rma: 'R1',
      items: [
        { sku: 'T1', quantity: 1 },
        { sku: 'T2', quantity: 2 },
      ],
    })
  })

  test.each<[string, object, string, object]>([
    [
      'a form with its names above the values',
      { name: 'x', phone: '1' },
      'Name\nAda\n\nPhone\n0123 4',
      { name: 'Ada', phone: '0123 4' },
    ],
    [
      'columns apart by spaces',
      { lines: [{ sku: 'x', qty: 1 }] },
      'Pos  SKU  Qty\n1    A-1  2\n2    B-2  3',
      {
        lines: [
          { sku: 'A-1', qty: 2 },
          { sku: 'B-2', qty: 3 },
        ],
      },
    ],
    ['dots between name and value', { name: 'x', total: 1 }, 'Name ..... Ada\nTotal .... 5', { name: 'Ada', total: 5 }],
    ['Japanese brackets', { name: 'x', quantity: 1 }, '【お名前】彩\n【数量】３', { name: '彩', quantity: 3 }],
    ['a title with a number', { order_id: 'x', total: 1 }, 'Order #4711\nTotal: 5', { order_id: '4711', total: 5 }],
    [
      'check boxes of a list',
      { name: 'x', tags: ['y'] },
      'Name: Ada\nTags:\n- [x] Go\n- [ ] Chess\n- [x] Tea',
      { name: 'Ada', tags: ['Go', 'Tea'] },
    ],
    [
      'check boxes on a line',
      { payment: 'x', news: true },
      'Payment: [ ] Card [x] Cash\nNews [x]',
      { payment: 'Cash', news: true },
    ],
    [
      'items in words',
      { items: [{ name: 'x', quantity: 1 }] },
      'Items:\n- 2 x Oak chair\n- 1 × Lamp, white',
      {
        items: [
          { name: 'Oak chair', quantity: 2 },
          { name: 'Lamp, white', quantity: 1 },
        ],
      },
    ],
    [
      'sections for names with a prefix',
      { billing_city: 'x', billing_zip: 'x', shipping_city: 'y', shipping_zip: 'x' },
      'Billing address:\nCity: Bonn\nZIP: 1\n\nShipping address:\nCity: Ulm\nZIP: 2',
      { billing_city: 'Bonn', billing_zip: '1', shipping_city: 'Ulm', shipping_zip: '2' },
    ],
    [
      'a value beside a section of its name',
      { id: 'x', shipping: { city: 'y' } },
      'ID: 1\nShipping: DHL\n\nShipping:\n  City: Bonn',
      { id: '1', shipping: { city: 'Bonn' } },
    ],
    [
      'fields of a form in JSON',
      { name: 'x', email: 'a@b.test' },
      '{"fields": [{"label": "Name", "value": "Ada"}, {"label": "E-mail", "value": "a@c.test"}]}',
      { name: 'Ada', email: 'a@c.test' },
    ],
    [
      'JSON in a text of JSON',
      { order_id: 'x' },
      '{"Type": "Notification", "Message": "{\\"order_id\\": \\"A-7\\"}"}',
      { order_id: 'A-7' },
    ],
    [
      'an answer above an older mail',
      { order_id: 'x', total: 1, note: 'n' },
      'Order ID: 7\nTotal: 5\n\nOn Mon, 2 Mar 2026, Shop wrote:\n> Note: an old one',
      { order_id: '7', total: 5, note: '' },
    ],
    [
      'a quoted mail',
      { order_id: 'x', note: 'n' },
      'please handle\n\n> Order ID: 7\n> Note: ring',
      { order_id: '7', note: 'ring' },
    ],
    [
      'names without a value',
      { id: 'x', phone: '1', note: 'n' },
      'ID: 7\nPhone: -\nNote: n/a',
      { id: '7', phone: '', note: '' },
    ],
    [
      'the sum below a table',
      { lines: [{ sku: 'x', qty: 1, price: 1 }], total: 1 },
      'sku,qty,price\nA,1,2.50\nTotal,1,2.50',
      { lines: [{ sku: 'A', qty: 1, price: 2.5 }], total: 2.5 },
    ],
  ])('from %s', (_what, given, context, payload) => {
    const { payload: actual, report } = fillPayload({ ...given }, context)
    expect(actual).toEqual(payload)
    expect(report.unconverted.total).toBe(0)
  })

  test('never from inherited properties', () => {
    expect(filled({ constructor: 'x', to_string: 'y' }, {})).toEqual({ constructor: '', to_string: '' })
  })
})

describe('a value is converted to the type of the example', () => {
  test.each([
    ['text', 'x', 'text', 'text'],
    ['a number to text, digit by digit', 'x', 1.1, '1.1'],
    ['a boolean to text', 'x', true, 'true'],
    ['a list to text', 'x', ['a', 1], 'a, 1'],
    ['a date stays text', '2025-01-01', '2026-02-03', '2026-02-03'],
    ['text to a number', 1.5, ' -3.25 ', -3.25],
    ['text with a currency to a number', 1.5, '€ 12.50', 12.5],
    ['text with a currency code to a number', 1.5, '12.50 EUR', 12.5],
    ['text to a number, where the example is whole', 1, '12.50', 12.5],
    ['yes to true', false, 'Yes', true],
    ['0 to false', true, 0, false],
    ['text to a list', ['x'], 'a, b,', ['a', 'b']],
    ['text to a list at semicolons', ['x'], 'a, b; c', ['a, b', 'c']],
    ['text to a list of numbers', [1], '1, 2', [1, 2]],
    ['one value to a list', [1], 7, [7]],
    ['a list to a list of anything', [], ['a', 1, { b: null }], ['a', 1, { b: null }]],
    ['a list item by its own type', ['x', 1], [2, 'y', true], [2, 'y', 'true']],
    ['null in a list that has nulls', ['x', null], ['y', null], ['y', null]],
    ['anything where the example has null', null, { a: [1, 'x'] }, { a: [1, 'x'] }],
    ['an object where the example has {}', {}, { a: 1 }, { a: 1 }],
    ['one object to a list of objects', [{ a: 1 }], { a: '2' }, [{ a: 2 }]],
  ])('%s', (_what, example, given, expected) => {
    expect(filled({ field: example }, { field: given })).toEqual({ field: expected })
  })

  test('in every item of a list of objects, whose fields are filled by name too', () => {
    const example = {
      lines: [
        { sku_code: 'S', price: 9.5, tags: ['t'] },
        { sku_code: 'S', price: 1 },
      ],
    }
    const context = {
      lines: [
        { SKU: 'ignored', skuCode: 7, price: '3', tags: 'a, b' },
        { 'sku code': 'B', price: 1 },
      ],
    }
    expect(filled(example, context)).toEqual({
      lines: [
        { sku_code: '7', price: 3, tags: ['a', 'b'] },
        { sku_code: 'B', price: 1 },
      ],
    })
  })

  test.each([
    ['not a number', 1.5, 'soon', 0, '"soon" is not a number'],
    ['an ambiguous separator', 1.5, '1,234', 0, '"1,234" has a separator of thousands or of decimals'],
    ['an object for a text', 'x', { b: 1 }, '', 'an object is not a text'],
    [
      'more digits than a number keeps',
      1,
      '12345678901234567890',
      0,
      '"12345678901234567890" has more digits than a number keeps',
    ],
    ['neither true nor false', true, 'maybe', false, '"maybe" is neither true nor false'],
    ['no object', {}, 'text', {}, '"text" is not an object'],
    ['an item that does not fit', [1], 'one, 2', [], '"one" is not a number'],
  ])('or the field stays empty, and the report says why: %s', (_what, example, given, expected, reason) => {
    const { payload, report } = fillPayload({ field: example }, JSON.stringify({ field: given }))
    expect(payload).toEqual({ field: expected })
    expect(report.unconverted.listed).toEqual([`field (${reason})`])
  })
})

describe('a field that the context does not name', () => {
  test.each([
    ['text'],
    ['message'],
    ['summary'],
    ['content'],
    ['body'],
    ['messageText'],
    ['order_summary'],
    ['Email body'],
  ])('gets the whole context if it is a text field named %s', (name) => {
    expect(filled({ [name]: 'x', data: { [name]: 'y' } }, 'Call Ada back')).toEqual({
      [name]: 'Call Ada back',
      data: { [name]: 'Call Ada back' },
    })
  })

  test('does not get the whole context if it is another field', () => {
    expect(filled({ text_color: 'x', message: 1, body: ['x'], context: 'x', textual: 'x' }, 'Call Ada back')).toEqual({
      text_color: '',
      message: 0,
      body: [],
      context: '',
      textual: '',
    })
  })

  test('gets the empty value of its type, never the value of the example', () => {
    const example = { a: 'x', b: 1, c: 1.5, d: true, e: null, f: [1], g: { h: 'x', i: {} }, j: [{ k: 1 }] }
    expect(filled(example, 'nothing of this')).toEqual({
      a: '',
      b: 0,
      c: 0,
      d: false,
      e: null,
      f: [],
      g: { h: '', i: {} },
      j: [],
    })
  })

  test('is left out if it is optional, in an item of a list', () => {
    expect(filled({ lines: [{ a: 1, b: 2 }, { a: 1 }] }, { lines: [{}] })).toEqual({ lines: [{ a: 0 }] })
  })

  test('gets the empty value of the simplest type if it has several', () => {
    expect(filled({ lines: [{ a: { b: 1 } }, { a: 'x' }] }, { lines: [{}] })).toEqual({ lines: [{ a: '' }] })
    expect(filled({ lines: [{ a: { b: 1 } }, { a: null }] }, { lines: [{}] })).toEqual({ lines: [{ a: null }] })
    expect(filled({ lines: [[{ a: 1 }], { a: { b: 1 } }] }, { lines: [{ a: 'x' }] })).toEqual({
      lines: [{ a: { b: 0 } }],
    })
  })
})

describe('for any example and any context', () => {
  const names = fc.constantFrom('id', 'name', 'message', 'total', 'lines', 'customer')
  const { object } = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom('x', '3', 'yes', 'a, b', '', 1, -0, 1.5, 1e21, true, null, '\u0000', '\ud800'),
      fc.array(tie('value'), { maxLength: 3 }),
      tie('object'),
    ),
    object: fc.dictionary(names, tie('value'), { noNullPrototype: true }),
  }))

  test('the payload follows the example, and is the same each time', () => {
    fc.assert(
      fc.property(object, object, (example, context) => {
        fc.pre(findExampleErrors(example).length === 0)
        const text = JSON.stringify(context)
        const { payload, bytes } = fillPayload(example, text)
        expect(findPayloadMismatches(example, payload)).toEqual([])
        expect(bytes).toBe(Buffer.byteLength(JSON.stringify(payload)))
        expect(JSON.stringify(fillPayload(example, text).payload)).toBe(JSON.stringify(payload))
      }),
      { seed: 1, numRuns: 60 },
    )
  })

  test('deeply nested JSON and __proto__ do no harm', () => {
    const deep = `{"a": ${'['.repeat(2_000)}${']'.repeat(2_000)}, "b": {"__proto__": {"c": 1}, "d": 1}}`
    const { payload, report } = fillPayload({ a: null, b: null }, deep)
    expect(payload).toEqual({ a: null, b: { d: 1 } })
    expect(report.unconverted.listed).toEqual(['a (it makes the payload more than 32 levels deep)'])
  })

  test('the payload never exceeds the limit: it is the same as without one, or refused', () => {
    const context = fc.oneof(
      object.map((value) => JSON.stringify(value)),
      fc.string({ unit: 'binary', maxLength: 200 }),
    )
    const seen = { filled: 0, refused: 0 }
    fc.assert(
      fc.property(object, context, fc.integer({ min: 2, max: 200 }), (example, text, maxBytes) => {
        const unlimited = fillPayload(example, text)
        const limited = fillWithin(example, text, maxBytes)
        seen[limited ? 'filled' : 'refused'] += 1
        const isSame = limited === undefined || JSON.stringify(limited) === JSON.stringify(unlimited.payload)
        expect(isSame).toBe(true)
        expect(limited === undefined || unlimited.bytes <= maxBytes).toBe(true)
      }),
      { seed: 1, numRuns: 60 },
    )
    expect(Math.min(seen.filled, seen.refused)).toBeGreaterThan(10)
  })
})

/** The payload; undefined if it is refused because of its size. Any other error is one of the test. */
function fillWithin(example: Record<string, unknown>, context: string, maxBytes: number): unknown {
  try {
    return fillPayload(example, context, maxBytes).payload
  } catch (error) {
    if (error instanceof PayloadTooLargeError) return undefined
    throw error
  }
}

function emptyLines(count: number): string {
  return JSON.stringify({ lines: Array.from({ length: count }, () => ({})) })
}

test('runs share the index of an example, of which 256 KiB at most are kept', () => {
  const large = { text: 'x'.repeat(60_000) }
  const first = indexExample(large)
  expect(indexExample(structuredClone(large))).toBe(first)
  for (let number = 0; number < 5; number += 1) indexExample({ ...large, number })
  expect(indexExample(large)).not.toBe(first)
})

describe('a large payload', () => {
  const texts = Object.fromEntries(Array.from({ length: 26 }, (_, index) => [`part ${index} text`, 'x']))
  /** The bytes beside the context, which each field repeats. */
  const overhead = fillPayload(texts, 'x').bytes - 26

  test('is filled up to 256 KiB, counted in bytes of JSON', () => {
    const longest = Math.floor((PAYLOAD_MAX_BYTES - overhead) / 26)
    const { payload } = fillPayload(texts, 'x'.repeat(longest))
    expect(findPayloadMismatches(texts, payload)).toEqual([])
    expect(Buffer.byteLength(JSON.stringify(payload))).toBeGreaterThan(PAYLOAD_MAX_BYTES - 26)
    const refusal = new PayloadTooLargeError('bytes', 'the payload would be larger than 256 KiB')
    expect(() => fillPayload(texts, 'x'.repeat(longest + 1))).toThrow(refusal)
    expect(() => fillPayload(texts, 'é'.repeat(longest / 2 + 1))).toThrow(refusal)
    expect(() => fillPayload(texts, '"'.repeat(longest / 2 + 1))).toThrow(refusal)
  })

  test('is refused before it has more than 20,000 values', () => {
    const fields = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`field_${index}`, 1]))
    expect(findPayloadMismatches({ lines: [fields] }, filled({ lines: [fields] }, emptyLines(190)))).toEqual([])
    const refusal = new PayloadTooLargeError('values', 'the payload would have more than 20,000 values')
    expect(() => fillPayload({ lines: [fields] }, emptyLines(200))).toThrow(refusal)
  })

  test('is not built any further once it is too large', () => {
    const added = jest.spyOn(FillState.prototype, 'addValue')
    const valuesOf = (example: Record<string, unknown>, context: string): number => {
      added.mockClear()
      expect(() => fillPayload(example, context)).toThrow(PayloadTooLargeError)
      return added.mock.calls.length
    }
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`field ${index} text`, 'x']))
    expect(valuesOf(many, 'x'.repeat(10_000))).toBeLessThan(30)
    const fields = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`field_${index}`, 1]))
    expect(valuesOf({ lines: [fields] }, emptyLines(400))).toBeLessThanOrEqual(PAYLOAD_MAX_VALUES + 1)
    added.mockRestore()
  })

  test('takes time for what the context holds, not for the optional fields of each item', () => {
    const names = Array.from({ length: 5_000 }, (_, index) => `field_${index}`)
    const lines = Array.from({ length: 3_300 }, () => ({}))
    const example = { lines: [Object.fromEntries(names.map((name) => [name, 1])), {}] }
    expect(filled(example, { lines })).toEqual({ lines })
    const item = { FIELD_7: 7, 'field 4999': 1, other: 1 }
    expect(filled(example, { lines: [item] })).toEqual({ lines: [{ field_7: 7, field_4999: 1 }] })
  })

  // Each level of lists was tried twice, so 30 levels took 2^30 attempts.
  test('is not needed for a value that does not fit at the end of 30 nested lists', () => {
    let example: unknown = 1
    let value: unknown = 'x'
    for (let level = 0; level < 30; level += 1) [example, value] = [[example], [value]]
    expect(filled({ field: example }, { field: value })).toEqual({ field: [] })
  })

  test('is refused when many fields of one name each try the same long list', () => {
    const example = Object.fromEntries(Array.from({ length: 490 }, (_, index) => [`a${'_'.repeat(index)}`, [1]]))
    const context = JSON.stringify({ a: [...Array.from({ length: 4_900 }, () => 1), 'x'] })
    expect(() => fillPayload(example, context)).toThrow(PayloadTooLargeError)
  })
})
