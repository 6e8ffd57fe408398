/** The limit that was reached: that of the key, or that of the process. */
export type LimitReached = 'key_limit' | 'total_limit'

/** Releases the slot. Further calls do nothing. */
export type ReleaseSlot = () => void

/** Limits how many requests are in flight at once, in total and for each key. */
export interface InFlightLimiter {
  /**
   * Waits for a free slot. Waiting callers are served in order, except that a key at its limit does not delay other keys.
   * Resolves to the limit that was reached if no slot became free in time.
   */
  acquire(key: string): Promise<ReleaseSlot | LimitReached>
  readonly inFlight: number
  readonly waiting: number
}

interface Waiter {
  key: string
  resolve: (result: ReleaseSlot | LimitReached) => void
}

/** Creates a limiter with `total` slots, of which one key gets at most `perKey`. A caller waits up to `waitMs` for a slot. */
export function createInFlightLimiter(options: { total: number; perKey: number; waitMs: number }): InFlightLimiter {
  const inFlightByKey = new Map<string, number>()
  const waiters = new Set<Waiter>()
  let inFlight = 0

  const limitReached = (key: string): LimitReached | undefined => {
    if ((inFlightByKey.get(key) ?? 0) >= options.perKey) return 'key_limit'
    return inFlight >= options.total ? 'total_limit' : undefined
  }
  const takeSlot = (key: string): ReleaseSlot => {
    inFlight += 1
    inFlightByKey.set(key, (inFlightByKey.get(key) ?? 0) + 1)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      inFlight -= 1
      const rest = (inFlightByKey.get(key) ?? 1) - 1
      if (rest === 0) inFlightByKey.delete(key)
      else inFlightByKey.set(key, rest)
      serveNextWaiter()
    }
  }
  const serveNextWaiter = (): void => {
    for (const waiter of waiters) {
      if (limitReached(waiter.key) !== undefined) continue
      waiters.delete(waiter)
      waiter.resolve(takeSlot(waiter.key))
      return
    }
  }
  return {
    acquire: async (key) => {
      if (limitReached(key) === undefined) return takeSlot(key)
      const { promise, resolve } = Promise.withResolvers<ReleaseSlot | LimitReached>()
      const waiter: Waiter = { key, resolve }
      waiters.add(waiter)
      const timer = setTimeout(() => {
        waiters.delete(waiter)
        resolve(limitReached(key) ?? takeSlot(key))
      }, options.waitMs)
      try {
        return await promise
      } finally {
        clearTimeout(timer)
      }
    },
    get inFlight() {
      return inFlight
    },
    get waiting() {
      return waiters.size
    },
  }
}
