import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { isContextObject, NumberText } from './context-value.ts'
import { parseContext } from './parse-context.ts'

describe('the names of a context', () => {
  test('are those of its JSON object, with numbers as they were written', () => {
    expect(
      parseContext(' {"id": "A-1", "total": 1.10, "lines": [{"n": 12345678901234567890}], "ok": true, "x": null} '),
    ).toEqual({
      id: 'A-1',
      total: new NumberText('1.10'),
      lines: [{ n: new NumberText('12345678901234567890') }],
      ok: true,
      x: null,
    })
  })

  test('are those of its lines', () => {
    const context =
      'New order\r\nOrder ID: A-1\n- total = 42.50\n* **Name**: Ada\n"city": "Paris, France"\nnote: call at 10:30'
    expect(parseContext(context)).toEqual({
      'Order ID': 'A-1',
      total: '42.50',
      Name: 'Ada',
      city: 'Paris, France',
      note: 'call at 10:30',
    })
  })

  test('may have JSON as the value of a line', () => {
    expect(parseContext('lines: [{"sku": "A", "count": 2}]\nraw: [not json]')).toEqual({
      lines: [{ sku: 'A', count: new NumberText('2') }],
      raw: '[not json]',
    })
  })

  test('have a list of values when they are repeated', () => {
    expect(parseContext('tag: a\ntag: b')).toEqual({ tag: ['a', 'b'] })
  })

  test.each([
    ['plain text', 'Please take care of this today'],
    ['a URL', 'https://example.com/a?b'],
    ['a JSON list', '[1, 2]'],
    ['a JSON string', '"text"'],
    ['nothing', ''],
    ['nesting beyond all measure', '['.repeat(5_000) + ']'.repeat(5_000)],
  ])('are none in %s', (_what, context) => {
    expect(parseContext(context)).toEqual({})
  })

  test('never change a prototype', () => {
    parseContext('{"__proto__": {"polluted": true}}')
    parseContext('__proto__: {"polluted": true}')
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })

  test.each([
    ['a', 'a'],
    ['  - a', 'a'],
    ['• **a b**', 'a b'],
    ['"a"', 'a'],
    ['__a__', 'a'],
    ['a.b/c (d) #1', 'a.b/c (d) #1'],
    ['a'.repeat(100), 'a'.repeat(100)],
    ['a'.repeat(101), undefined],
    ['"""a', undefined],
    ['-a', undefined],
    ['?', undefined],
    ['', undefined],
  ])('begin at the first separator of a line: %j is the name %j', (label, name) => {
    for (const separator of [':', '=', ' : ']) {
      expect(Object.entries(parseContext(`${label}${separator}x:y=z`))).toEqual(
        name === undefined ? [] : [[name, 'x:y=z']],
      )
    }
  })

  test('are found in any text, without an error', () => {
    const piece = fc.constantFrom(
      'a',
      ' ',
      '"',
      "'",
      '`',
      '*',
      '_',
      '-',
      '•',
      ':',
      '=',
      '/',
      '{',
      '}',
      '[',
      ']',
      ',',
      '1',
      '\n',
      '\r',
      '\u2028',
      '\u0000',
      '\ud800',
      'é',
      '\\',
      '{"a":',
      '__proto__',
      '1e999',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const context = pieces.join('')
        const names = parseContext(context)
        expect(isContextObject(names)).toBe(true)
        expect(parseContext(context)).toEqual(names)
      }),
      { seed: 1, numRuns: 5_000 },
    )
  })
})
