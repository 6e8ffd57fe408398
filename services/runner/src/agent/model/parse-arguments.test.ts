import { describe, expect, test } from '@jest/globals'
import { PAYLOAD_MAX_DEPTH } from '@workflow-service/contract'
import { parseArguments } from './parse-arguments.ts'

describe('the arguments of a tool call', () => {
  test.each([
    ['{"a": 1}', { a: 1 }],
    ['', {}],
    [' \n', {}],
    ['{"a": [0.1, -0, 1e3, 1.50, 9007199254740991, 0.30000000000000004]}', undefined],
  ])('are read from %j', (input, expected) => {
    expect(parseArguments(input)).toMatchObject({ fault: null, ...(expected ? { value: expected } : {}) })
  })

  test.each([
    '9007199254740993',
    '12345678901234567890',
    '-9007199254740992',
    '0.1000000000000000055',
    '1234567.12345678901234',
    '1e400',
  ])('are refused with the number %s, which would be rounded', (number) => {
    const { fault } = parseArguments(`{"order": {"id": ${number}}}`)
    expect(fault).toContain(`the number ${number} has more digits than can be sent exactly`)
  })

  test.each([
    ['{"a": 1', 'one JSON object'],
    ['[1]', 'one JSON object'],
    ['"text"', 'one JSON object'],
    ['null', 'one JSON object'],
    ['{"a": {"__proto__": 1}}', '__proto__'],
    ['{"a": [{"b": "x\\u0000"}]}', 'NUL'],
    ['["\\ud800"]', 'surrogate'],
    ['{"x\\u0000": 1}', 'NUL'],
    ['{"a":'.repeat(PAYLOAD_MAX_DEPTH + 1) + '1' + '}'.repeat(PAYLOAD_MAX_DEPTH + 1), 'levels deep'],
  ])('are refused if they are %j', (input, why) => {
    const { value, fault } = parseArguments(input)
    expect(fault).toContain(why)
    expect(JSON.stringify(value)).not.toMatch(/(?<!\\)\\u(?:0000|d8)/)
  })
})
