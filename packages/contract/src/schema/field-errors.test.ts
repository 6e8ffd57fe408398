import { expect, test } from '@jest/globals'
import { WorkflowStartIn } from '../public/resources.ts'
import { compile } from './ajv.ts'
import { toFieldErrors } from './field-errors.ts'

test('a field that has several errors is reported once', () => {
  const validateStart = compile(WorkflowStartIn)
  validateStart({ context: '\u0000'.repeat(10_001) })
  expect(toFieldErrors(validateStart.errors ?? [])).toMatchObject([{ field: 'context', code: 'string_too_long' }])
})
