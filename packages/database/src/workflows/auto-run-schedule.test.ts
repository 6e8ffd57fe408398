import { describe, expect, test } from '@jest/globals'
import type { AutoRunFrequency, ScheduleTiming } from '@workflow-service/contract'
import { nextAutoRunAt, scheduleAutoRun } from './auto-run-schedule.ts'

const next = (frequency: AutoRunFrequency, anchor: string, after: string) =>
  nextAutoRunAt({ frequency, anchorAt: new Date(anchor) }, new Date(after)).toISOString()

describe('nextAutoRunAt', () => {
  test.each<[what: string, AutoRunFrequency, anchor: string, after: string, expected: string]>([
    ['an hour later', 'hourly', '2026-03-01T09:20:30.500Z', '2026-03-01T09:20:30.500Z', '2026-03-01T10:20:30.500Z'],
    ['a moment later', 'hourly', '2026-03-01T09:20Z', '2026-03-05T17:19:59.999Z', '2026-03-05T17:20Z'],
    ['a day later', 'daily', '2026-03-01T09:20Z', '2026-03-04T09:20Z', '2026-03-05T09:20Z'],
    ['on the day of the week', 'weekly', '2026-03-02T09:20Z', '2026-03-10T00:00Z', '2026-03-16T09:20Z'],
    ['over the end of a year', 'monthly', '2026-03-15T09:20Z', '2026-12-15T09:20Z', '2027-01-15T09:20Z'],
    ['29 February, on the 28th', 'monthly', '2028-02-29T06:00Z', '2029-02-01T00:00Z', '2029-02-28T06:00Z'],
    ['on the 29th after that', 'monthly', '2028-02-29T06:00Z', '2029-02-28T06:00Z', '2029-03-29T06:00Z'],
    ['29 February, in a leap year', 'monthly', '2028-02-29T06:00Z', '2032-02-10T00:00Z', '2032-02-29T06:00Z'],
    ['when New York sets clocks forward', 'daily', '2026-01-01T12:00Z', '2026-03-07T12:00Z', '2026-03-08T12:00Z'],
    ['when Berlin sets clocks back', 'daily', '2026-01-01T12:00Z', '2026-10-24T12:00Z', '2026-10-25T12:00Z'],
    ['after a long downtime', 'hourly', '2020-01-01T00:05Z', '2026-06-15T13:37Z', '2026-06-15T14:05Z'],
    ['after years', 'monthly', '2020-01-31T00:05Z', '2026-02-10T00:00Z', '2026-02-28T00:05Z'],
    ['with a clock before the anchor', 'daily', '2026-03-01T09:20Z', '2025-01-01T00:00Z', '2026-03-02T09:20Z'],
    ['a month after it', 'monthly', '2026-03-31T09:20Z', '2025-01-01T00:00Z', '2026-04-30T09:20Z'],
  ])('%s: %s from %s, the first time after %s is %s', (_what, frequency, anchor, after, expected) => {
    expect(next(frequency, anchor, after)).toBe(new Date(expected).toISOString())
  })

  test('a monthly schedule of the 31st takes the last day of shorter months and the 31st again after them', () => {
    const times: string[] = []
    let after = '2027-12-31T23:30:00Z'
    for (let month = 0; month < 14; month++) times.push((after = next('monthly', '2027-01-31T23:30:00Z', after)))
    expect(times.map((time) => time.slice(5, 10)).join(' ')).toBe(
      '01-31 02-29 03-31 04-30 05-31 06-30 07-31 08-31 09-30 10-31 11-30 12-31 01-31 02-28',
    )
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

  // In Nuuk, the last hour of 28 March is left out.
  test.each([
    ['daily', null, '2026-03-28T01:30:00Z'],
    ['weekly', 6, '2026-03-22T01:30:00Z'],
    ['monthly', 28, '2026-03-01T01:30:00Z'],
  ] as const)('so is one at the end of a day: %s', (frequency, day, before) => {
    const timing = { time: '23:30', day, zone: 'America/Nuuk' }
    const due = byClock(frequency, timing, before)
    expect(due).toBe('2026-03-29T01:00:00.000Z')
    const after = { daily: '2026-03-30', weekly: '2026-04-05', monthly: '2026-04-29' }[frequency]
    expect(byClock(frequency, timing, due)).toBe(`${after}T00:30:00.000Z`)
  })

  // In Troll, 01:00 to 02:59 of 29 March are left out.
  test.each(['01:00', '01:30', '02:30'])('so is %s where two hours are left out after midnight', (time) => {
    const timing = { time, zone: 'Antarctica/Troll' }
    for (const before of ['2026-03-28T12:00:00Z', '2026-03-28T23:30:00Z', '2026-03-29T00:30:00Z']) {
      expect(byClock('daily', timing, before)).toBe('2026-03-29T01:00:00.000Z')
    }
  })
})

const now = new Date('2026-03-09T10:00:00Z')
const daily = { enabled: true, frequency: 'daily' } as const
const timing: ScheduleTiming = { time: '08:30', day: null, time_zone: 'Europe/Berlin' }
const inUtc = { ...timing, time_zone: 'UTC' }
const due = { anchorAt: new Date('2026-03-01T09:20:00Z'), nextAt: new Date('2026-03-02T09:20:00Z') }
const both = (time: string) => ({ anchorAt: new Date(time), nextAt: new Date(time) })
const timed = both('2026-03-02T07:30:00Z')
const none = { anchorAt: null, nextAt: null }

type Schedule = Parameters<typeof scheduleAutoRun>

test.each<[what: string, Schedule[0], Schedule[1], times: object]>([
  ['is switched on counts from now', daily, null, { anchorAt: now, nextAt: new Date('2026-03-10T10:00:00Z') }],
  ['is saved as it is keeps its times, also one that is due', daily, { ...daily, ...due }, due],
  [
    'gets another frequency counts from now',
    { enabled: true, frequency: 'weekly' },
    { ...daily, ...due },
    { anchorAt: now, nextAt: new Date('2026-03-16T10:00:00Z') },
  ],
  // For services of 1.0.0, without timings, the anchor is the next time.
  ['gets a time counts from now', { ...daily, timing }, { ...daily, ...due }, both('2026-03-10T07:30:00Z')],
  ['is saved with its time', { ...daily, timing: { ...timing } }, { ...daily, timing, ...timed }, timed],
  [
    'gets another zone counts from now',
    { ...daily, timing: inUtc },
    { ...daily, timing, ...timed },
    both('2026-03-10T08:30:00Z'),
  ],
  ['is switched off has no times', { ...daily, enabled: false }, { ...daily, ...due }, none],
  ['is removed has none', { enabled: null, frequency: null }, { ...daily, ...due }, none],
])('a schedule that %s', (_what, autoRun, stored, times) => {
  expect(scheduleAutoRun(autoRun, stored, now)).toEqual(times)
})
