import { describe, expect, test } from '@jest/globals'
import type { AutoRunFrequency } from '@workflow-service/contract'
import { nextAutoRunAt, scheduleAutoRun } from './auto-run-schedule.ts'

const next = (frequency: AutoRunFrequency, anchor: string, after: string) =>
  nextAutoRunAt({ frequency, anchorAt: new Date(anchor) }, new Date(after)).toISOString()

describe('nextAutoRunAt', () => {
  test.each<[AutoRunFrequency, string, string, string]>([
    ['hourly', '2026-03-01T09:20:30.500Z', '2026-03-01T09:20:30.500Z', '2026-03-01T10:20:30.500Z'],
    ['hourly', '2026-03-01T09:20:00Z', '2026-03-05T17:19:59.999Z', '2026-03-05T17:20:00.000Z'],
    ['daily', '2026-03-01T09:20:00Z', '2026-03-04T09:20:00Z', '2026-03-05T09:20:00.000Z'],
    ['weekly', '2026-03-02T09:20:00Z', '2026-03-10T00:00:00Z', '2026-03-16T09:20:00.000Z'],
    ['monthly', '2026-03-15T09:20:00Z', '2026-12-15T09:20:00Z', '2027-01-15T09:20:00.000Z'],
  ])('%s from %s: the first time after %s is %s', (frequency, anchor, after, expected) => {
    expect(next(frequency, anchor, after)).toBe(expected)
  })

  test('a monthly schedule of the 31st takes the last day of shorter months and the 31st again after them', () => {
    const times: string[] = []
    let after = '2027-12-31T23:30:00Z'
    for (let month = 0; month < 14; month++) times.push((after = next('monthly', '2027-01-31T23:30:00Z', after)))
    expect(times.map((time) => time.slice(5, 10)).join(' ')).toBe(
      '01-31 02-29 03-31 04-30 05-31 06-30 07-31 08-31 09-30 10-31 11-30 12-31 01-31 02-28',
    )
  })

  test('a monthly schedule of 29 February runs on the 28th in other years', () => {
    expect(next('monthly', '2028-02-29T06:00:00Z', '2029-02-01T00:00:00Z')).toBe('2029-02-28T06:00:00.000Z')
    expect(next('monthly', '2028-02-29T06:00:00Z', '2029-02-28T06:00:00Z')).toBe('2029-03-29T06:00:00.000Z')
    expect(next('monthly', '2028-02-29T06:00:00Z', '2032-02-10T00:00:00Z')).toBe('2032-02-29T06:00:00.000Z')
  })

  test.each([
    ['America/New_York, clocks forward', '2026-03-07T12:00:00Z', '2026-03-08T12:00:00.000Z'],
    ['Europe/Berlin, clocks back', '2026-10-24T12:00:00Z', '2026-10-25T12:00:00.000Z'],
  ])('a daylight-saving change moves no daily run (%s)', (_place, after, expected) => {
    expect(next('daily', '2026-01-01T12:00:00Z', after)).toBe(expected)
  })

  test('times missed in a long downtime are skipped: the next one is in the future', () => {
    expect(next('hourly', '2020-01-01T00:05:00Z', '2026-06-15T13:37:00Z')).toBe('2026-06-15T14:05:00.000Z')
    expect(next('monthly', '2020-01-31T00:05:00Z', '2026-02-10T00:00:00Z')).toBe('2026-02-28T00:05:00.000Z')
  })

  test('a clock before the anchor gives the first time after the anchor', () => {
    expect(next('daily', '2026-03-01T09:20:00Z', '2025-01-01T00:00:00Z')).toBe('2026-03-02T09:20:00.000Z')
    expect(next('monthly', '2026-03-31T09:20:00Z', '2025-01-01T00:00:00Z')).toBe('2026-04-30T09:20:00.000Z')
  })
})

const byClock = (
  frequency: AutoRunFrequency,
  { time = '08:30', day = null, zone = 'Europe/Berlin' }: { time?: string; day?: number | null; zone?: string },
  after: string,
) =>
  nextAutoRunAt(
    { frequency, timing: { time, day, time_zone: zone }, anchorAt: new Date(0) },
    new Date(after),
  ).toISOString()

describe('nextAutoRunAt by the clock of a place', () => {
  test.each([
    ['hourly', { time: '00:15', zone: 'Asia/Kolkata' }, '2026-03-01T09:50:00Z', '2026-03-01T10:45:00.000Z'],
    ['daily', {}, '2026-03-28T07:30:00Z', '2026-03-29T06:30:00.000Z'],
    ['weekly', { day: 7 }, '2026-11-24T00:00:00Z', '2026-11-29T07:30:00.000Z'],
    ['weekly', { day: 15 }, '2026-11-24T00:00:00Z', '2026-11-30T07:30:00.000Z'],
    ['monthly', { day: 5 }, '2026-11-24T00:00:00Z', '2026-12-05T07:30:00.000Z'],
    ['monthly', { day: 31 }, '2027-02-01T00:00:00Z', '2027-02-28T07:30:00.000Z'],
  ] as const)('%s with %j: the first time after %s is %s', (frequency, timing, after, expected) => {
    expect(byClock(frequency, timing, after)).toBe(expected)
  })

  test('a time that a change of clocks leaves out is due after it, and one that it repeats is due once', () => {
    expect(byClock('daily', { time: '02:30' }, '2026-03-28T12:00:00Z')).toBe('2026-03-29T01:00:00.000Z')
    const first = byClock('daily', { time: '02:30' }, '2026-10-24T12:00:00Z')
    expect(first).toBe('2026-10-25T00:30:00.000Z')
    expect(byClock('daily', { time: '02:30' }, first)).toBe('2026-10-26T01:30:00.000Z')
  })
})

describe('scheduleAutoRun', () => {
  const now = new Date('2026-03-01T09:20:00Z')
  const later = new Date('2026-03-09T10:00:00Z')

  test('a schedule that is switched on counts from now', () => {
    expect(scheduleAutoRun({ enabled: true, frequency: 'daily' }, null, now)).toEqual({
      anchorAt: now,
      nextAt: new Date('2026-03-02T09:20:00Z'),
    })
  })

  test('saving an unchanged schedule keeps its times, also one that is due', () => {
    const times = scheduleAutoRun({ enabled: true, frequency: 'daily' }, null, now)
    const again = scheduleAutoRun(
      { enabled: true, frequency: 'daily' },
      { enabled: true, frequency: 'daily', ...times },
      later,
    )
    expect(again).toEqual(times)
  })

  test('another frequency counts from now', () => {
    const times = scheduleAutoRun({ enabled: true, frequency: 'daily' }, null, now)
    expect(
      scheduleAutoRun({ enabled: true, frequency: 'weekly' }, { enabled: true, frequency: 'daily', ...times }, later),
    ).toEqual({ anchorAt: later, nextAt: new Date('2026-03-16T10:00:00Z') })
  })

  test('another time or zone counts from now, and the anchor is the next time, for a release without timings', () => {
    const timing = { time: '08:30', day: null, time_zone: 'Europe/Berlin' }
    const daily = { enabled: true, frequency: 'daily' as const }
    const times = scheduleAutoRun({ ...daily, timing }, { ...daily, ...scheduleAutoRun(daily, null, now) }, now)
    const first = new Date('2026-03-02T07:30:00Z')
    expect(times).toEqual({ anchorAt: first, nextAt: first })
    const stored = { ...daily, timing, ...times }
    expect(scheduleAutoRun({ ...daily, timing: { ...timing } }, stored, later)).toEqual(times)
    const elsewhere = { ...daily, timing: { ...timing, time_zone: 'UTC' } }
    expect(scheduleAutoRun(elsewhere, stored, later).nextAt).toEqual(new Date('2026-03-10T08:30:00Z'))
  })

  test.each([
    { enabled: false, frequency: 'daily' as const },
    { enabled: null, frequency: null },
  ])('%j has no times', (autoRun) => {
    expect(scheduleAutoRun(autoRun, null, now)).toEqual({ anchorAt: null, nextAt: null })
  })
})
