import { jest } from '@jest/globals'

const TIMERS = [
  'hrtime',
  'nextTick',
  'performance',
  'queueMicrotask',
  'setImmediate',
  'clearImmediate',
  'setInterval',
  'clearInterval',
  'setTimeout',
  'clearTimeout',
] as const

/**
 * Sets the time of day of this process so far ahead of the database's, or behind it, until `jest.useRealTimers`. Timers
 * and monotonic clocks stay real.
 */
export function setProcessClock(aheadMs: number): void {
  jest.useFakeTimers({ now: Date.now() + aheadMs, doNotFake: [...TIMERS] })
}
