import { describe, expect, test } from '@jest/globals'
import { InvalidArgumentError } from 'commander'
import { parseExpiry, parseId, parseList, parseNumber, parseTime } from './parse-options.ts'

describe('parseTime', () => {
  test.each([
    ['2026-01-31', '2026-01-31T00:00:00.000Z'],
    ['2026-01-31T09:30', '2026-01-31T09:30:00.000Z'],
    ['2026-01-31 09:30:15', '2026-01-31T09:30:15.000Z'],
    ['2026-01-31T09:30:15.5Z', '2026-01-31T09:30:15.500Z'],
    ['2026-01-31T09:30:00+02:00', '2026-01-31T07:30:00.000Z'],
  ])('reads %s as UTC unless it has another zone', (text, iso) => {
    expect(parseTime(text).toISOString()).toBe(iso)
  })

  test.each([
    ['90s', 90],
    ['15m', 900],
    ['2h', 7_200],
    ['7d', 604_800],
  ])('reads %s as a duration ago', (text, seconds) => {
    expect(Math.abs(Date.now() - seconds * 1_000 - parseTime(text).getTime())).toBeLessThan(1_000)
  })

  test.each(['yesterday', '', '12', '2026-02-30x', '2026-02-30', '2026-13-01', '15 m', '-5m'])('rejects %j', (text) => {
    expect(() => parseTime(text)).toThrow(InvalidArgumentError)
  })
})

test('parseExpiry reads a duration as from now, and refuses a time in the past', () => {
  expect(parseExpiry('90d').getTime()).toBeGreaterThan(Date.now() + 89 * 86_400_000)
  expect(() => parseExpiry('2020-01-01')).toThrow('It must be in the future.')
})

test('parseNumber takes whole numbers from 1 to the largest one', () => {
  const parse = parseNumber(10_000)
  expect([parse('1'), parse('10000')]).toEqual([1, 10_000])
  for (const text of ['0', '10001', '-1', '1.5', 'x', '']) expect(() => parse(text)).toThrow(InvalidArgumentError)
})

test('parseId takes a UUID, and returns it in lower case', () => {
  expect(parseId('01890A5D-AC96-774B-BCCE-B302099A8057')).toBe('01890a5d-ac96-774b-bcce-b302099a8057')
  expect(() => parseId('forward')).toThrow(InvalidArgumentError)
})

test('parseList returns the items in the order of the allowed values, each once', () => {
  const parse = parseList(['read', 'start'])
  expect(parse('start, read,start')).toEqual(['read', 'start'])
  for (const text of ['', 'write', 'read,write', 'read,'])
    expect(() => parse(text)).toThrow('It must be one or more of read, start, separated by commas.')
})
