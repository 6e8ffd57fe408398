import type { FieldError } from './errors.ts'
import type { AutoRunFrequency } from './public/resources.ts'
import { Closed, Nullable, type Static } from './schema/objects.ts'
import { Int, Str } from './schema/values.ts'

/** The day of a monthly schedule that is the last of each month. */
const LAST_DAY = 31

export const ScheduleTiming = Closed('ScheduleTiming', 'When a schedule is due, by the clock of a place.', {
  time: Str('The time of day; of an hourly schedule, its minute.', {
    pattern: '^(?:[01]\\d|2[0-3]):[0-5]\\d$',
    maxLength: 5,
    examples: ['08:30'],
  }),
  day: Nullable(
    Int('Weekly: 1 (Monday) to 7. Monthly: 1 to 28, or 31 for the last day. Null for the others.', {
      minimum: 1,
      maximum: LAST_DAY,
    }),
  ),
  time_zone: Str('The time zone by its IANA name.', { maxLength: 100, examples: ['Europe/Berlin'] }),
})
export type ScheduleTiming = Static<typeof ScheduleTiming>

/** Checks what the schema cannot express. */
export function findTimingErrors(frequency: AutoRunFrequency | null, timing: ScheduleTiming): FieldError[] {
  const { day, time_zone: zone } = timing
  const isDay =
    frequency === 'weekly'
      ? day !== null && day <= 7
      : frequency === 'monthly'
        ? day !== null && (day <= 28 || day === LAST_DAY)
        : day === null
  return [
    ...(isDay ? [] : [error('day', 'must be 1 to 7 (weekly), 1 to 28 or 31 (monthly), or null')]),
    ...(isTimeZone(zone) ? [] : [error('time_zone', 'must be the name of a time zone, such as Europe/Berlin')]),
  ]
}

function isTimeZone(name: string): boolean {
  try {
    return Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

function error(field: string, message: string): FieldError {
  return { field: `timing.${field}`, code: 'value_error', message }
}
