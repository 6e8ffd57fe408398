import { describe, expect, test } from '@jest/globals'
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
    [{ context: 'a', 'a/b~c': 1 }, [['a/b~c', 'extra_forbidden']]],
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

  test('reports a field once that has several', () => {
    expect(codesOf({ context: '\u0000'.repeat(10_001) })).toEqual([['context', 'string_too_long']])
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
})
