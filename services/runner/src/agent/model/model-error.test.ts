import { describe, expect, test } from '@jest/globals'
import { modelConfig } from '../../../test/support/model-config.ts'
import { readRetryAfter, toModelError } from './model-error.ts'

const now = Date.parse('2026-01-31T09:00:00Z')

describe('the delay that an API asks for', () => {
  test.each([
    [{ 'retry-after': '7' }, 7_000],
    [{ 'retry-after': ' 0 ' }, 0],
    [{ 'retry-after': '1.5' }, 1_500],
    [{ 'retry-after-ms': '1500', 'retry-after': '2' }, 1_500],
    [{ 'retry-after': 'Sat, 31 Jan 2026 09:00:30 GMT' }, 30_000],
    [{ 'retry-after': 'Sat, 31 Jan 2026 08:00:00 GMT' }, 0],
    [{ 'retry-after': '1769850030' }, 30_000],
    [{ 'retry-after': '172800' }, 86_400_000],
    [{ 'retry-after': 'soon' }, null],
    [{ 'retry-after': '-5' }, null],
    [{ 'retry-after': '' }, null],
    [{}, null],
  ])('is read from %j as %j ms', (headers, expected) => {
    expect(readRetryAfter(headers, now)).toBe(expected)
  })
})

test('an exception within a stream of Bedrock is an outage', () => {
  const message = 'The system encountered an unexpected error during processing. Try your request again.'
  const error = Object.assign(new Error(message), { type: 'internalServerException', statusCode: 500 })
  expect(toModelError(error, modelConfig())).toMatchObject({ code: 'model_unavailable', kind: 'unavailable' })
  const other = Object.assign(new Error('policy'), { statusCode: 500 })
  expect(toModelError(other, modelConfig())).toMatchObject({ kind: 'unreadable' })
})
