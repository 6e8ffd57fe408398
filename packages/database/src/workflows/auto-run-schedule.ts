import type { AutoRunFrequency, ScheduleTiming } from '@workflow-service/contract'
import { Cron } from 'croner'

/** The stored times of a schedule. Both are null when auto-run is off. */
export interface StoredSchedule {
  readonly anchorAt: Date | null
  readonly nextAt: Date | null
}

/** What a person sets of a schedule. */
interface ScheduleSettings {
  readonly enabled: boolean | null
  readonly frequency: AutoRunFrequency | null
  readonly timing?: ScheduleTiming | null
}

const PERIOD_MS = { hourly: 3_600_000, daily: 86_400_000, weekly: 604_800_000 } as const

/** How often, and when. */
interface Recurrence {
  readonly frequency: AutoRunFrequency
  readonly timing?: ScheduleTiming | null
}

/**
 * The schedule's first time after `after`. With a timing, by the clock of its time zone: a time that a daylight-saving
 * change leaves out is the first one after it, and one that it repeats is due once. Without one, times are in UTC: the
 * anchor plus one, two, three … periods. A month without the anchor's day (the 31st, or 29 February) uses its last day;
 * later months use the anchor's day again.
 */
export function nextAutoRunAt({ frequency, timing, anchorAt }: Recurrence & { anchorAt: Date }, after: Date): Date {
  if (timing) return nextByClock(frequency, timing, after)
  if (frequency === 'monthly') return nextMonthly(anchorAt, after)
  const periodMs = PERIOD_MS[frequency]
  const periods = Math.floor((after.getTime() - anchorAt.getTime()) / periodMs) + 1
  return new Date(anchorAt.getTime() + Math.max(1, periods) * periodMs)
}

/**
 * The times to store when a workflow is saved. An unchanged schedule keeps its times, so that saving twice changes
 * nothing and a due time stays due. A schedule that was switched on or got another frequency counts from `now`.
 */
export function scheduleAutoRun(
  autoRun: ScheduleSettings,
  stored: (ScheduleSettings & StoredSchedule) | null,
  now: Date,
): StoredSchedule {
  const { enabled, frequency, timing } = autoRun
  if (!enabled || frequency === null) return { anchorAt: null, nextAt: null }
  const isSame = stored?.enabled && stored.frequency === frequency && isSameTiming(stored.timing, timing)
  if (isSame && stored.anchorAt !== null && stored.nextAt !== null) {
    return { anchorAt: stored.anchorAt, nextAt: stored.nextAt }
  }
  if (timing) {
    const nextAt = nextByClock(frequency, timing, now)
    return { anchorAt: nextAt, nextAt }
  }
  return { anchorAt: now, nextAt: nextAutoRunAt({ frequency, anchorAt: now }, now) }
}

function isSameTiming(one?: ScheduleTiming | null, other?: ScheduleTiming | null): boolean {
  return one?.time === other?.time && one?.day === other?.day && one?.time_zone === other?.time_zone
}

function nextByClock(
  frequency: AutoRunFrequency,
  { time, day, time_zone: timezone }: ScheduleTiming,
  after: Date,
): Date {
  const [hour, minute] = time.split(':').map(Number)
  // A service of 1.0.0, without timings, may have changed the frequency, and left a day of the earlier one.
  const weekday = day !== null && day <= 7 ? day : 1
  const dayOfMonth = day === null ? 1 : day > 28 ? 'L' : day
  const pattern = {
    hourly: `${minute} * * * *`,
    daily: `${minute} ${hour} * * *`,
    weekly: `${minute} ${hour} * * ${weekday}`,
    monthly: `${minute} ${hour} ${dayOfMonth} * *`,
  }[frequency]
  const next = new Cron(pattern, { timezone }).nextRun(after)!
  return frequency === 'hourly' ? next : (leftOutBefore(next, pattern, timezone, after) ?? next)
}

/**
 * The midnight to which the change of clocks goes that leaves out a time of the pattern between `after` and `next`, as
 * in America/Nuuk. Croner has such a time on the next day of the pattern, and only others after the change.
 */
function leftOutBefore(next: Date, pattern: string, timezone: string, after: Date): Date | undefined {
  const byWall = new Cron(pattern, { timezone: 'UTC' }).nextRun(new Date(wallMs(after, timezone)))!
  const aheadMs = wallMs(next, timezone) - next.getTime()
  const midnight = new Cron('0 0 * * *', { timezone }).nextRun(new Date(byWall.getTime() - aheadMs))!
  const isBefore = wallMs(new Date(midnight.getTime() - 1), timezone) < byWall.getTime()
  // In Antarctica/Troll, midnight is two hours before the time to which the clocks go.
  const isLeftOut = isBefore && byWall.getTime() < wallMs(midnight, timezone)
  return isLeftOut && midnight < next ? midnight : undefined
}

/** What the clock of the place shows, to the second, as if it were UTC. */
function wallMs(time: Date, timeZone: string): number {
  return Date.parse(`${time.toLocaleString('sv', { timeZone })}Z`)
}

function nextMonthly(anchorAt: Date, after: Date): Date {
  const months =
    (after.getUTCFullYear() - anchorAt.getUTCFullYear()) * 12 + after.getUTCMonth() - anchorAt.getUTCMonth()
  const first = Math.max(1, months)
  const candidate = addMonths(anchorAt, first)
  return candidate > after ? candidate : addMonths(anchorAt, first + 1)
}

/** The same day and time this many months later, or the last day of a shorter month. */
function addMonths(date: Date, months: number): Date {
  const result = new Date(date)
  result.setUTCDate(1)
  result.setUTCMonth(date.getUTCMonth() + months)
  const lastDay = new Date(Date.UTC(result.getUTCFullYear(), result.getUTCMonth() + 1, 0)).getUTCDate()
  result.setUTCDate(Math.min(date.getUTCDate(), lastDay))
  return result
}
