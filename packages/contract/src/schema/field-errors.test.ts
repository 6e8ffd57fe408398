import { expect, test } from '@jest/globals'
import { WorkflowStartIn } from '../public/resources.ts'
import { ScheduleTiming } from '../schedule-timing.ts'
import { compile } from './ajv.ts'
import { toFieldErrors } from './field-errors.ts'

test('a field that has several errors is reported once', () => {
  const validateStart = compile(WorkflowStartIn)
  validateStart({ context: '\u0000'.repeat(10_001) })
  expect(toFieldErrors(validateStart.errors ?? [])).toMatchObject([{ field: 'context', code: 'string_too_long' }])
})

test('a text that must have a form is shown one', () => {
  const validateTiming = compile(ScheduleTiming)
  validateTiming({ time: '9:00', day: null, time_zone: 'UTC' })
  const message = expect.stringMatching(/^must match .*, such as 08:30$/)
  expect(toFieldErrors(validateTiming.errors ?? [])).toMatchObject([{ field: 'time', message }])
})
