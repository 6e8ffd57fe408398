import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { FIELD_MEANINGS } from '../errors.ts'
import { WebhookSourceIn } from '../internal/resources.ts'
import { WorkflowStartIn } from '../public/resources.ts'
import { compile } from './ajv.ts'
import { toFieldErrors } from './field-errors.ts'

const validateStart = compile(WorkflowStartIn)

function codesOf(body: unknown): [field: string, code: string][] {
  validateStart(body)
  const errors = toFieldErrors(validateStart.errors ?? [], Object.keys(WorkflowStartIn.properties))
  return errors.map(({ field, code }) => [field, code])
}

describe('toFieldErrors', () => {
  test.each<[unknown, [string, string][]]>([
    [{}, [['context', 'missing']]],
    [{ context: '' }, [['context', 'string_too_short']]],
    [{ context: 'x'.repeat(10_001) }, [['context', 'string_too_long']]],
    [{ context: 1 }, [['context', 'string_type']]],
    [{ context: null }, [['context', 'string_type']]],
    [{ context: 'a\u0000' }, [['context', 'string_unicode']]],
    [{ context: 'a', session_id: 'x' }, [['session_id', 'uuid_parsing']]],
    [{ context: 'a', session_id: 1 }, [['session_id', 'uuid_type']]],
    [{ context: 'a', session_id: null }, []],
    [[], [['body', 'model_attributes_type']]],
    ['text', [['body', 'model_attributes_type']]],
    [{ context: 'a', more: 1 }, [['more', 'extra_forbidden']]],
    [
      { zebra: 1, session_id: 'x', context: '' },
      [
        ['context', 'string_too_short'],
        ['session_id', 'uuid_parsing'],
        ['zebra', 'extra_forbidden'],
      ],
    ],
  ])('reports the errors of %j in the order of the schema, unknown fields last', (body, errors) => {
    expect(codesOf(body)).toEqual(errors)
  })

  test('counts code points, not UTF-16 units', () => {
    expect(codesOf({ context: '😀'.repeat(10_000) })).toEqual([])
  })

  test('reports dict_type for a free-form field that is not an object', () => {
    const validateSource = compile(WebhookSourceIn)
    validateSource({ name: 'a', description: '', endpoint_url: 'https://a.example', example_request_body: [] })
    expect(toFieldErrors(validateSource.errors ?? [])).toEqual([
      { field: 'example_request_body', code: 'dict_type', message: 'must be a JSON object' },
    ])
  })

  test('reports each field of any body once, by a known code, in the order of the schema', () => {
    const value = fc.oneof(fc.constantFrom('', 'a', ' ', '\u0000', null, 1, {}), fc.jsonValue({ maxDepth: 2 }))
    const names = fc.oneof(
      fc.constantFrom('context', 'session_id'),
      fc.string({ maxLength: 3 }),
      fc.constant('a/b~c.d'),
    )
    const body = fc.oneof(fc.dictionary(names, value, { noNullPrototype: true }), value)
    fc.assert(
      fc.property(body, (anyBody) => {
        const isValid = validateStart(anyBody)
        const errors = toFieldErrors(validateStart.errors ?? [], Object.keys(WorkflowStartIn.properties))
        expect(errors.length === 0).toBe(isValid)
        expect(new Set(errors.map(({ field }) => field)).size).toBe(errors.length)
        for (const { code, message } of errors) {
          expect(Object.keys(FIELD_MEANINGS)).toContain(code)
          expect(message).not.toBe('')
        }
        const ranks = errors.map(({ field, code }) =>
          code === 'extra_forbidden' ? 2 : ['context', 'session_id'].indexOf(field),
        )
        expect(ranks).toEqual(ranks.toSorted((a, b) => a - b))
      }),
      { seed: 1, numRuns: 1_000 },
    )
  })
})
