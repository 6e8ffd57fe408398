import { describe, expect, test } from '@jest/globals'
import { compile } from './ajv.ts'
import { toFieldErrors } from './field-errors.ts'
import { WorkflowStartIn } from './resources.ts'
import { WebhookSourceIn } from './internal-api.ts'

const check = compile(WorkflowStartIn)
const faultsOf = (body: unknown) => {
  check(body)
  return toFieldErrors(check.errors ?? [], Object.keys(WorkflowStartIn.properties)).map(({ field, code }) => [
    field,
    code,
  ])
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
  ])('reads the faults of %j', (body, faults) => {
    expect(faultsOf(body)).toEqual(faults)
  })

  test('names a free-form object that is none with dict_type', () => {
    const checkSource = compile(WebhookSourceIn)
    checkSource({ name: 'a', description: '', endpoint_url: 'https://a.example', example_request_body: [] })
    expect(toFieldErrors(checkSource.errors ?? [])).toEqual([
      { field: 'example_request_body', code: 'dict_type', message: 'must be a JSON object' },
    ])
  })
})
