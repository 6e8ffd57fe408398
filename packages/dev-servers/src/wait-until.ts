import { setTimeout as pause } from 'node:timers/promises'

export interface WaitOptions {
  /** @default 10_000 */
  timeoutMs?: number
  /** @default 20 */
  intervalMs?: number
  /** What is waited for: part of the error. */
  message?: string | (() => string)
}

/**
 * Polls until the condition returns a truthy value, and resolves to it. A condition that throws or rejects is tried
 * again. Rejects after the timeout, also while the condition is pending, with the last error as `cause`.
 */
export async function waitUntil<Value>(
  condition: () => Value | Promise<Value>,
  { timeoutMs = 10_000, intervalMs = 20, message = 'the condition' }: WaitOptions = {},
): Promise<NonNullable<Value>> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    let cause: unknown
    const abort = new AbortController()
    try {
      const late = pause(Math.max(deadline - Date.now(), 0), undefined, { signal: abort.signal })
      late.catch(() => {})
      const value = await Promise.race([condition(), late])
      if (value) return value
    } catch (error) {
      cause = error
    } finally {
      abort.abort()
    }
    if (Date.now() >= deadline) {
      const what = typeof message === 'string' ? message : message()
      throw new Error(`Waited ${timeoutMs} ms for ${what}`, { cause })
    }
    await pause(intervalMs)
  }
}
