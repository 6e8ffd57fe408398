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
 * after the timeout with the message and the last error.
 */
export async function waitUntil<Value>(
  condition: () => Value | Promise<Value>,
  { timeoutMs = 10_000, intervalMs = 20, message = 'the condition' }: WaitOptions = {},
): Promise<NonNullable<Value>> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    let cause: unknown
    try {
      const value = await condition()
      if (value) return value
    } catch (error) {
      cause = error
    }
    if (Date.now() >= deadline) {
      const what = typeof message === 'string' ? message : message()
      throw new Error(`Waited ${timeoutMs} ms in vain for ${what}`, { cause })
    }
    await pause(intervalMs)
  }
}
