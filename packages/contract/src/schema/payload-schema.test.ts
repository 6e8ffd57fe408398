import { describe, expect, test } from '@jest/globals'
import { PAYLOAD_MAX_DEPTH } from '../limits.ts'
import { derivePayloadSchema } from './payload-schema.ts'

const WHOLE_NUMBER = { type: 'number', description: 'A whole number in the example.' }

function schemaOfField(example: unknown): unknown {
  return (derivePayloadSchema({ field: example })['properties'] as { field: unknown }).field
}

describe('derivePayloadSchema', () => {
  test.each([
    ['a string', 'A-1', { type: 'string' }],
    ['a date as a string', '2026-01-31', { type: 'string' }],
    ['a whole number as any number, with a hint', 3, WHOLE_NUMBER],
    ['a fraction as any number', 9.5, { type: 'number' }],
    ['a boolean', false, { type: 'boolean' }],
    ['null as any value', null, {}],
    ['an empty object as any fields', {}, { type: 'object', properties: {}, additionalProperties: true }],
    [
      'an object as exactly its fields',
      { a: 1 },
      { type: 'object', properties: { a: WHOLE_NUMBER }, required: ['a'], additionalProperties: false },
    ],
    ['a list as a list of its item type', ['x', 'y'], { type: 'array', items: { type: 'string' } }],
    ['an empty list as a list of anything', [], { type: 'array', items: {} }],
    ['a list of nulls as a list of anything', [null, null], { type: 'array', items: {} }],
    [
      'a mixed list as a list of any of its types',
      ['x', 1, true],
      { type: 'array', items: { type: ['string', 'number', 'boolean'] } },
    ],
    ['whole numbers beside fractions as numbers', [1, 2.5], { type: 'array', items: { type: 'number' } }],
    ['a list with nulls as its type or null', ['x', null], { type: 'array', items: { type: ['string', 'null'] } }],
    [
      'a list of lists by the items of all of them',
      [[1], [], [2.5]],
      { type: 'array', items: { type: 'array', items: { type: 'number' } } },
    ],
    [
      'a list of scalars and objects as alternatives',
      ['x', { a: 1 }],
      {
        type: 'array',
        items: {
          anyOf: [
            { type: 'object', properties: { a: WHOLE_NUMBER }, required: ['a'], additionalProperties: false },
            { type: 'string' },
          ],
        },
      },
    ],
    [
      'a field that only some objects of a list have as optional',
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
  ])('describes %s', (_what, example, schema) => {
    expect(schemaOfField(example)).toEqual(schema)
  })

  test('leaves out a field named __proto__', () => {
    const example = JSON.parse('{"__proto__": {"a": 1}, "b": 1}') as Record<string, unknown>
    expect(derivePayloadSchema(example)['required']).toEqual(['b'])
  })

  test('allows any value below the maximum depth, without overflowing the stack', () => {
    const levels = PAYLOAD_MAX_DEPTH * 1_000
    const example = JSON.parse(`{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`) as Record<string, unknown>
    expect(() => JSON.stringify(derivePayloadSchema(example))).not.toThrow()
  })
})
