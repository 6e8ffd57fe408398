import type { ServerResponse } from 'node:http'
import { responseState } from './response-state.ts'

/** How much of the responses that their callers do not read is kept, and for how long. */
export interface UnreadLimits {
  /** For the responses of one key together. */
  readonly maxBytesPerKey: number
  /** Without any progress. */
  readonly timeoutMs: number
  readonly checkMs: number
}

export const UNREAD_LIMITS: UnreadLimits = { maxBytesPerKey: 32 * 1024 * 1024, timeoutMs: 30_000, checkMs: 250 }

/**
 * Closes connections whose callers do not read their responses, because a response stays in memory until it is sent:
 * those without progress for `timeoutMs`, and the oldest ones of a key that has more than `maxBytesPerKey`. Returns a
 * function that ends the checks.
 * @param responses Gives all responses that have not been sent: the open-ended ones, which may have ended by now, and
 *   those of the requests in flight; each in the order of their arrival.
 */
export function closeUnreadResponses(responses: () => readonly ServerResponse[], limits: UnreadLimits): () => void {
  const stalls = new WeakMap<ServerResponse, { readonly bytes: number; readonly sinceMs: number }>()
  const check = (): void => {
    const bytesByKey = new Map<string | undefined, number>()
    const nowMs = performance.now()
    for (const res of responses().toReversed()) {
      const bytes = res.writableEnded ? res.writableLength : 0
      if (bytes === 0) continue
      const { key } = responseState(res)
      const total = (bytesByKey.get(key) ?? 0) + bytes
      bytesByKey.set(key, total)
      const stall = stalls.get(res)
      if (stall?.bytes !== bytes) stalls.set(res, { bytes, sinceMs: nowMs })
      const isStalled = stall?.bytes === bytes && nowMs - stall.sinceMs >= limits.timeoutMs
      if (isStalled || total > limits.maxBytesPerKey) res.req.socket.destroy()
    }
  }
  const timer = setInterval(check, limits.checkMs)
  timer.unref()
  return () => clearInterval(timer)
}
