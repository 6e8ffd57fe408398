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
 * and monotonic clocks stay real. Imported as `@workflow-service/testkit/set-process-clock`, because `@jest/globals`
 * cannot be loaded outside of Jest.
 */
export function setProcessClock(aheadMs: number): void {
  jest.useFakeTimers({ now: Date.now() + aheadMs, advanceTimers: true, doNotFake: [...TIMERS] })
}
