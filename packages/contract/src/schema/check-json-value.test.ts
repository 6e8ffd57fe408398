import { describe, expect, test } from '@jest/globals'
import { PAYLOAD_MAX_DEPTH, PAYLOAD_MAX_VALUES } from '../limits.ts'
import { findExampleErrors } from './check-json-value.ts'

function nest(levels: number): Record<string, unknown> {
  return levels === 1 ? {} : { inner: nest(levels - 1) }
}

function repeat<Value>(count: number, value: Value): Value[] {
  return Array.from({ length: count }, () => value)
}

describe('findExampleErrors', () => {
  test.each([[[]], ['text'], [null], [undefined]])('refuses %j, which is not an object', (example) => {
    expect(findExampleErrors(example)).toEqual([
      { field: 'example_request_body', code: 'dict_type', message: 'must be a JSON object' },
    ])
  })

  test('refuses the type of verification requests, which may be deeper in the example', () => {
    expect(findExampleErrors({ type: 'service.webhook.verification' })).toMatchObject([
      { field: 'example_request_body.type', code: 'reserved_value' },
    ])
    expect(findExampleErrors({ event: { type: 'service.webhook.verification' } })).toEqual([])
  })

  test.each([
    ['depth', nest(PAYLOAD_MAX_DEPTH), nest(PAYLOAD_MAX_DEPTH + 1), 'too_deep'],
    [
      'number of fields, of all objects together,',
      { lines: repeat(100, { a: 1, b: 1, c: 1, d: { e: 1 } }).slice(1), five: 1, of: 1, them: 1, more: 1 },
      { lines: repeat(100, { a: 1, b: 1, c: 1, d: { e: 1 } }) },
      'too_many_fields',
    ],
    ['length of a list', { a: { b: repeat(100, 1) } }, { a: { b: repeat(101, 1) } }, 'too_long'],
    [
      'number of values',
      { pairs: repeat(66, repeat(100, [0, 0])) },
      { pairs: repeat(67, repeat(100, [0, 0])) },
      'too_large',
    ],
    // Each takes six bytes of JSON.
    ['number of bytes', { text: '\u0001'.repeat(10_920) }, { text: '\u0001'.repeat(10_921) }, 'too_large'],
  ])('accepts the largest %s and refuses more', (_what, largest, larger, code) => {
    expect(findExampleErrors(largest)).toEqual([])
    expect(findExampleErrors(larger)).toMatchObject([{ code }])
  })

  test('stops early, also where aliases in YAML make 16 levels of 100 items each', () => {
    let reads = 0
    const leaf = {
      get field() {
        reads += 1
        // Otherwise a check that does not stop would never end.
        if (reads > PAYLOAD_MAX_VALUES) throw new Error('It reads on')
        return 1
      },
    }
    let aliased: unknown = leaf
    for (let level = 0; level < 16; level += 1) aliased = repeat(100, aliased)
    expect(findExampleErrors({ aliased })).toMatchObject([{ code: 'too_many_fields' }])
  })

  test('refuses fields named __proto__, with the path in the input of the caller', () => {
    expect(findExampleErrors(JSON.parse('{"a":[{"__proto__":1}]}'), 'example')).toMatchObject([
      { field: 'example.a.0.__proto__', code: 'reserved_name' },
    ])
  })

  test('refuses text that PostgreSQL cannot store', () => {
    expect(findExampleErrors({ a: '\u0000' })).toMatchObject([
      { field: 'example_request_body.a', code: 'string_unicode' },
    ])
  })
})
