import { describe, expect, test } from '@jest/globals'
import { findInexactNumber } from './find-inexact-number.ts'

describe('findInexactNumber', () => {
  test.each([
    '-0',
    '1.50',
    '1e2',
    '1E+2',
    '1.5e-7',
    '0.30000000000000004',
    '9007199254740992',
    '5e-324',
    '1.7976931348623157e308',
    '100000000000000000000',
    '12345678901234567000',
  ])('accepts %s, which JavaScript represents exactly', (number) => {
    expect(findInexactNumber(`{"a":[${number}]}`)).toBeUndefined()
  })

  test.each([
    '9007199254740993',
    '12345678901234567890',
    '0.1234567890123456789',
    '1e400',
    '1e-400',
    '3.14159265358979323846',
    `1.${'0'.repeat(399)}`,
  ])('finds %s, which JavaScript does not represent exactly', (number) => {
    expect(findInexactNumber(`{"a":{"b":${number}},"c":1}`)).toBe(number.slice(0, 40))
  })

  test('finds a number of a million digits in linear time', () => {
    const number = `1.${'0'.repeat(1_000_000)}1`
    expect(findInexactNumber(`{"a":${number}}`)).toBe(number.slice(0, 40))
  })

  test('ignores digits in strings', () => {
    expect(findInexactNumber('{"a":"12345678901234567890","12345678901234567890":1}')).toBeUndefined()
  })
})
