import type { AutoRunFrequency } from '@workflow-service/contract'

/** The stored times of a schedule. Both are null when auto-run is off. */
export interface StoredSchedule {
  readonly anchorAt: Date | null
  readonly nextAt: Date | null
}

const PERIOD_MS = { hourly: 3_600_000, daily: 86_400_000, weekly: 604_800_000 } as const

/**
 * The schedule's first time after `after`. Times are in UTC, so daylight-saving changes have no effect: the anchor plus
 * one, two, three … periods. A month without the anchor's day (the 31st, or 29 February) uses its last day; later
 * months use the anchor's day again.
 */
export function nextAutoRunAt(schedule: { frequency: AutoRunFrequency; anchorAt: Date }, after: Date): Date {
  const { frequency, anchorAt } = schedule
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
  autoRun: { enabled: boolean | null; frequency: AutoRunFrequency | null },
  stored: ({ enabled: boolean | null; frequency: AutoRunFrequency | null } & StoredSchedule) | null,
  now: Date,
): StoredSchedule {
  const { enabled, frequency } = autoRun
  if (!enabled || frequency === null) return { anchorAt: null, nextAt: null }
  if (stored?.enabled && stored.frequency === frequency && stored.anchorAt !== null && stored.nextAt !== null) {
    return { anchorAt: stored.anchorAt, nextAt: stored.nextAt }
  }
  return { anchorAt: now, nextAt: nextAutoRunAt({ frequency, anchorAt: now }, now) }
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
