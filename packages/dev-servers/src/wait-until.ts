import { setTimeout as pause } from 'node:timers/promises'

/** How long to wait, and what to say when it was in vain. */
export interface WaitOptions {
  /** Default 10,000. */
  timeoutMs?: number
  /** Default 20. */
  intervalMs?: number
  message?: string | (() => string)
}

/**
 * Polls until the condition gives something truthy and returns that. A condition that throws counts as not yet. Rejects
 * after the timeout with the message and the last error, also when the condition itself hangs.
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
      throw new Error(`Waited ${timeoutMs} ms in vain for ${what}`, { cause })
    }
    await pause(intervalMs)
  }
}
