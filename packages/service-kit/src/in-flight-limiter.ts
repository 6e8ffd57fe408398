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
   * @param arrivedMs When the caller first asked, if it asks again: it keeps its place, and takes that of a later one if too many wait.
   */
  acquire(key: string, waitMs?: number, arrivedMs?: number): Promise<ReleaseSlot | LimitReached>
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
  waiters: Waiter[]
}

interface Waiter {
  readonly arrivedMs: number
  resolve: (result: ReleaseSlot | LimitReached) => void
}

/** Creates a limiter. Each call takes time in proportion to the waiting callers of its key, regardless of the number of keys. */
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
    const state = states.get(key) ?? { inFlight: 0, waiters: [] }
    states.set(key, state)
    return state
  }
  /** Call after every change of the key's slots or waiting callers. */
  const update = (key: string, state: KeyState): void => {
    if (state.inFlight === 0 && state.waiters.length === 0) states.delete(key)
    if (state.waiters.length > 0 && state.inFlight < limits.perKey) ready.add(key)
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
    const index = state.waiters.indexOf(waiter)
    if (index === -1) return
    state.waiters.splice(index, 1)
    waiting -= 1
    update(key, state)
  }
  const refuse = (key: string, state: KeyState, waiter: Waiter): void => {
    waiter.resolve(limitReached(state) ?? 'total_limit')
    removeWaiter(key, state, waiter)
  }
  const serveNextWaiter = (): void => {
    if (inFlight >= limits.total) return
    for (const key of ready) {
      const state = stateOf(key)
      const [waiter] = state.waiters
      if (!waiter) continue
      const release = takeSlot(key, state)
      // Moves the key to the end of the order, behind the keys that were not served yet.
      ready.delete(key)
      removeWaiter(key, state, waiter)
      waiter.resolve(release)
      return
    }
  }
  const tryAcquire = (key: string): ReleaseSlot | LimitReached => {
    const state = states.get(key)
    return limitReached(state) ?? takeSlot(key, state ?? stateOf(key))
  }
  return {
    tryAcquire,
    acquire: async (key, waitMs = limits.waitMs, arrivedMs = performance.now()) => {
      const state = stateOf(key)
      const reached = limitReached(state)
      if (reached === undefined) return takeSlot(key, state)
      const isFull = waiting >= limits.maxWaiting || state.waiters.length >= limits.maxWaitingPerKey
      const last = state.waiters.at(-1)
      const mayReplace = last !== undefined && last.arrivedMs > arrivedMs
      if ((isFull && !mayReplace) || isStopped || waitMs <= 0) {
        update(key, state)
        return reached
      }
      const { promise, resolve } = Promise.withResolvers<ReleaseSlot | LimitReached>()
      const waiter: Waiter = { arrivedMs, resolve }
      state.waiters.splice(1 + state.waiters.findLastIndex((other) => other.arrivedMs <= arrivedMs), 0, waiter)
      waiting += 1
      update(key, state)
      if (isFull && last) refuse(key, state, last)
      const timer = setTimeout(() => refuse(key, state, waiter), waitMs)
      try {
        return await promise
      } finally {
        clearTimeout(timer)
      }
    },
    stopWaiting: () => {
      isStopped = true
      for (const [key, state] of states) {
        for (let waiter = state.waiters[0]; waiter; waiter = state.waiters[0]) refuse(key, state, waiter)
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
