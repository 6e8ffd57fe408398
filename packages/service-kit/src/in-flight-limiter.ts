/** The limit that was reached: that of the key, or that of the process. */
export type LimitReached = 'key_limit' | 'total_limit'

/** Releases the slot. Further calls do nothing. */
export type ReleaseSlot = () => void

/** Limits how many calls are in flight at once, in total and for each key. */
export interface InFlightLimiter {
  /**
   * Waits for a free slot, by default `waitMs` of the limiter. Callers of one key are served in the order of their arrival,
   * and keys with waiting callers in turn: a key at its limit, or with many callers, does not delay the others. Resolves to
   * the limit that was reached if no slot became free in time, or at once if too many callers wait.
   */
  acquire(key: string, waitMs?: number): Promise<ReleaseSlot | LimitReached>
  /** Takes a free slot; gives the limit that is reached if there is none. Callers that wait already may be served later. */
  tryAcquire(key: string): ReleaseSlot | LimitReached
  /** Ends all waiting: callers that wait, and later ones that would have to, get the limit that was reached. */
  stopWaiting(): void
  readonly inFlight: number
  readonly waiting: number
}

/** The limits of a limiter. `perKey` and `maxWaitingPerKey` are for one key, the others for all together. */
export interface InFlightLimits {
  total: number
  perKey: number
  waitMs: number
  /** Waiting callers keep memory, so their number is limited. */
  maxWaiting: number
  maxWaitingPerKey: number
}

interface KeyState {
  inFlight: number
  /** In the order of their arrival. */
  waiters: Set<Waiter>
}

interface Waiter {
  resolve: (result: ReleaseSlot | LimitReached) => void
}

/** Creates a limiter. Each call takes constant time, regardless of the number of keys and waiting callers. */
export function createInFlightLimiter(limits: InFlightLimits): InFlightLimiter {
  /** Keys with a slot in flight or a waiting caller. */
  const states = new Map<string, KeyState>()
  /** Keys with a waiting caller that are below their own limit: they only wait for a slot of the process. */
  const ready = new Set<string>()
  let inFlight = 0
  let waiting = 0
  let isStopped = false

  const limitReached = (state: KeyState | undefined): LimitReached | undefined => {
    if (state && state.inFlight >= limits.perKey) return 'key_limit'
    return inFlight >= limits.total ? 'total_limit' : undefined
  }
  const stateOf = (key: string): KeyState => {
    const state = states.get(key) ?? { inFlight: 0, waiters: new Set() }
    states.set(key, state)
    return state
  }
  /** Call after every change of the key's slots or waiting callers. */
  const update = (key: string, state: KeyState): void => {
    if (state.inFlight === 0 && state.waiters.size === 0) states.delete(key)
    if (state.waiters.size > 0 && state.inFlight < limits.perKey) ready.add(key)
    else ready.delete(key)
  }
  const takeSlot = (key: string, state: KeyState): ReleaseSlot => {
    inFlight += 1
    state.inFlight += 1
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      inFlight -= 1
      state.inFlight -= 1
      update(key, state)
      serveNextWaiter()
    }
  }
  const removeWaiter = (key: string, state: KeyState, waiter: Waiter): void => {
    if (!state.waiters.delete(waiter)) return
    waiting -= 1
    update(key, state)
  }
  const serveNextWaiter = (): void => {
    if (inFlight >= limits.total) return
    for (const key of ready) {
      const state = stateOf(key)
      for (const waiter of state.waiters) {
        const release = takeSlot(key, state)
        // Moves the key to the end of the order, behind the keys that were not served yet.
        ready.delete(key)
        removeWaiter(key, state, waiter)
        waiter.resolve(release)
        return
      }
    }
  }
  const tryAcquire = (key: string): ReleaseSlot | LimitReached => {
    const state = states.get(key)
    return limitReached(state) ?? takeSlot(key, state ?? stateOf(key))
  }
  return {
    tryAcquire,
    acquire: async (key, waitMs = limits.waitMs) => {
      const state = stateOf(key)
      const reached = limitReached(state)
      if (reached === undefined) return takeSlot(key, state)
      const isFull = waiting >= limits.maxWaiting || state.waiters.size >= limits.maxWaitingPerKey
      if (isFull || isStopped || waitMs <= 0) {
        update(key, state)
        return reached
      }
      const { promise, resolve } = Promise.withResolvers<ReleaseSlot | LimitReached>()
      const waiter: Waiter = { resolve }
      state.waiters.add(waiter)
      waiting += 1
      update(key, state)
      const timer = setTimeout(() => {
        resolve(limitReached(state) ?? 'total_limit')
        removeWaiter(key, state, waiter)
      }, waitMs)
      try {
        return await promise
      } finally {
        clearTimeout(timer)
      }
    },
    stopWaiting: () => {
      isStopped = true
      for (const [key, state] of states) {
        for (const waiter of state.waiters) {
          waiter.resolve(limitReached(state) ?? 'total_limit')
          removeWaiter(key, state, waiter)
        }
      }
    },
    get inFlight() {
      return inFlight
    },
    get waiting() {
      return waiting
    },
  }
}
