import { describe, expect, test } from '@jest/globals'
import { PAYLOAD_MAX_DEPTH } from '../limits.ts'
import { findExampleErrors } from './example-errors.ts'

function nest(levels: number): Record<string, unknown> {
  return levels === 1 ? {} : { inner: nest(levels - 1) }
}

describe('findExampleErrors', () => {
  test.each([[[]], ['text'], [null], [undefined]])('refuses %j, which is not an object', (example) => {
    expect(findExampleErrors(example)).toEqual([
      { field: 'example_request_body', code: 'dict_type', message: 'must be a JSON object' },
    ])
  })

  test('refuses the type of verification requests', () => {
    expect(findExampleErrors({ type: 'service.webhook.verification' })).toMatchObject([
      { field: 'example_request_body.type', code: 'reserved_value' },
    ])
  })

  test('accepts the maximum depth and refuses more', () => {
    expect(findExampleErrors(nest(PAYLOAD_MAX_DEPTH))).toEqual([])
    expect(findExampleErrors(nest(PAYLOAD_MAX_DEPTH + 1))).toMatchObject([{ code: 'too_deep' }])
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
