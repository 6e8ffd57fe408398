import { describe, expect, test } from '@jest/globals'
import {
  EXAMPLE_MAX_BYTES,
  EXAMPLE_MAX_FIELDS,
  EXAMPLE_MAX_LIST_LENGTH,
  PAYLOAD_MAX_DEPTH,
  PAYLOAD_MAX_VALUES,
} from '../limits.ts'
import { findExampleErrors } from './example-errors.ts'

function nest(levels: number): Record<string, unknown> {
  return levels === 1 ? {} : { inner: nest(levels - 1) }
}

function repeat<Value>(count: number, value: Value): Value[] {
  return Array.from({ length: count }, () => value)
}

function withFields(count: number): Record<string, unknown> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`field_${index}`, 1]))
}

/** An example whose JSON has this many bytes. */
function withBytes(bytes: number, character = 'x'): Record<string, unknown> {
  const rest = bytes - '{"text":""}'.length
  return { text: character.repeat(rest / Buffer.byteLength(JSON.stringify(character).slice(1, -1))) }
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

  test('accepts the maximum depth and refuses more', () => {
    expect(findExampleErrors(nest(PAYLOAD_MAX_DEPTH))).toEqual([])
    expect(findExampleErrors(nest(PAYLOAD_MAX_DEPTH + 1))).toEqual([
      {
        field: 'example_request_body',
        code: 'too_deep',
        message: `must not nest objects and lists more than 32 levels deep; ${repeat(32, 'inner').join('.')} is deeper`,
      },
    ])
  })

  test('accepts the maximum number of fields, of all objects together, and refuses more', () => {
    expect(findExampleErrors(withFields(EXAMPLE_MAX_FIELDS))).toEqual([])
    expect(findExampleErrors({ lines: repeat(100, { a: 1, b: { c: 1 } }), note: 1 })).toEqual([])
    const lines = repeat(EXAMPLE_MAX_LIST_LENGTH, { a: 1, b: 1, c: 1, d: { e: 1 } })
    expect(findExampleErrors({ lines })).toEqual([
      {
        field: 'example_request_body',
        code: 'too_many_fields',
        message: 'must have at most 500 named fields in all; it has 501',
      },
    ])
  })

  test('accepts the longest list and refuses a longer one, at any depth', () => {
    expect(findExampleErrors({ lines: repeat(EXAMPLE_MAX_LIST_LENGTH, 1) })).toEqual([])
    expect(findExampleErrors({ order: { lines: repeat(EXAMPLE_MAX_LIST_LENGTH + 1, 1) } })).toEqual([
      {
        field: 'example_request_body',
        code: 'too_long',
        message: 'must not have lists of more than 100 items; order.lines has 101',
      },
    ])
  })

  test.each(['x', '"', '\n', 'é', '😀', '\u007f'])('counts the bytes of the JSON in UTF-8: %j', (character) => {
    const largest = withBytes(
      EXAMPLE_MAX_BYTES - ((EXAMPLE_MAX_BYTES - 11) % Buffer.byteLength(JSON.stringify(character).slice(1, -1))),
      character,
    )
    expect(findExampleErrors(largest)).toEqual([])
    const [error, ...others] = findExampleErrors({ ...largest, more: 'x' })
    expect(others).toEqual([])
    expect(error).toEqual({
      field: 'example_request_body',
      code: 'too_large',
      message: `must be at most 65,536 bytes of JSON; it has ${Buffer.byteLength(JSON.stringify({ ...largest, more: 'x' })).toLocaleString('en')}`,
    })
  })

  test('refuses more values than a payload may have', () => {
    const pairs = repeat(100, repeat(100, [0, 0]))
    expect(JSON.stringify({ pairs }).length).toBeLessThan(EXAMPLE_MAX_BYTES)
    expect(findExampleErrors({ pairs })).toMatchObject([
      { code: 'too_large', message: expect.stringContaining('30,102') },
    ])
    expect(PAYLOAD_MAX_VALUES).toBeLessThan(30_102)
  })

  test('stops counting early, also where aliases in YAML make 16 levels of 100 items each', () => {
    let reads = 0
    const leaf = {
      get field() {
        reads += 1
        // Otherwise a check that does not stop would never end.
        if (reads > EXAMPLE_MAX_BYTES) throw new Error('It reads on')
        return 1
      },
    }
    let aliased: unknown = leaf
    for (let level = 0; level < 16; level += 1) aliased = repeat(100, aliased)
    expect(findExampleErrors({ aliased })).toMatchObject([
      { code: 'too_large', message: 'must be at most 65,536 bytes of JSON; it has more than 262,144' },
    ])
  })

  test('names at most 500 characters of a path', () => {
    const [error] = findExampleErrors({ ['x'.repeat(60_000)]: repeat(101, 1) })
    expect(error?.message.length).toBeLessThan(600)
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
