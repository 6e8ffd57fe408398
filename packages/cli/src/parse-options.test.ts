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
    const before = Date.now()
    const time = parseTime(text).getTime()
    expect(time).toBeGreaterThanOrEqual(before - seconds * 1_000)
    expect(time).toBeLessThanOrEqual(Date.now() - seconds * 1_000)
  })

  test.each(['yesterday', '', '12', '2026-02-30x', '2026-13-01', '15 m', '-5m'])('rejects %j', (text) => {
    expect(() => parseTime(text)).toThrow(InvalidArgumentError)
  })
})

describe('parseExpiry', () => {
  test('reads a duration as from now', () => {
    expect(parseExpiry('90d').getTime()).toBeGreaterThan(Date.now() + 89 * 86_400_000)
  })

  test('rejects a time in the past', () => {
    expect(() => parseExpiry('2020-01-01')).toThrow('It must be in the future.')
  })
})

describe('parseNumber', () => {
  const parse = parseNumber(10_000)

  test.each([
    ['1', 1],
    ['10000', 10_000],
  ])('accepts %s', (text, limit) => {
    expect(parse(text)).toBe(limit)
  })

  test.each(['0', '10001', '-1', '1.5', 'x', ''])('rejects %j', (text) => {
    expect(() => parse(text)).toThrow(InvalidArgumentError)
  })
})

describe('parseId', () => {
  test('returns a UUID in lower case', () => {
    expect(parseId('01890A5D-AC96-774B-BCCE-B302099A8057')).toBe('01890a5d-ac96-774b-bcce-b302099a8057')
  })

  test('rejects text that is not a UUID', () => {
    expect(() => parseId('forward')).toThrow(InvalidArgumentError)
  })
})

describe('parseList', () => {
  const parse = parseList(['read', 'start'])

  test('returns the items in the order of the allowed values, each once', () => {
    expect(parse('start, read,start')).toEqual(['read', 'start'])
  })

  test.each(['', 'write', 'read,write', 'read,'])('rejects %j', (text) => {
    expect(() => parse(text)).toThrow('It must be one or more of read, start, separated by commas.')
  })
})
