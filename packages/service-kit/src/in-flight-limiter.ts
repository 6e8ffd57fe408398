/** The limit that was reached: that of the key, or that of the process. */
export type LimitReached = 'key_limit' | 'total_limit'

/** Releases the slot. Further calls do nothing. */
export type ReleaseSlot = () => void

/** The limits of a limiter. `perKey` and `maxWaitingPerKey` are for one key, the others for all together. */
export interface InFlightLimits {
  total: number
  perKey: number
  /**
   * Whether a key gets no slot where it has as many as are free: one key may have half of all and the next one a
   * quarter, so that others still find some. Default: false.
   */
  leavesFree?: boolean
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

/**
 * Limits how many calls are in flight at once, in total and for each key. Each call takes time in proportion to the
 * waiting callers of its key, and only where too many wait in all, to the number of keys.
 */
export class InFlightLimiter {
  readonly #limits: InFlightLimits
  /** Keys with a slot in flight or a waiting caller. */
  readonly #states = new Map<string, KeyState>()
  /** Keys with a waiting caller that are below their own limit: they only wait for a slot of the process. */
  readonly #ready = new Set<string>()
  #isStopped = false
  inFlight = 0
  waiting = 0

  constructor(limits: InFlightLimits) {
    this.#limits = limits
  }

  /**
   * Takes a free slot; gives the limit that is reached if there is none. Callers that wait already may be served later.
   */
  tryAcquire(key: string): ReleaseSlot | LimitReached {
    const state = this.#stateOf(key)
    return this.#limitReached(state) ?? this.#takeSlot(key, state)
  }

  /**
   * Waits for a free slot, by default `waitMs` of the limiter. Callers of one key are served in the order of their
   * arrival, and keys with waiting callers in turn: a key at its limit, or with many callers, does not delay the
   * others. Resolves to the limit that was reached if no slot became free in time, or at once if too many callers wait:
   * in all, that is the last one of the key with the most, so that two keys cannot keep all others from waiting.
   * @param arrivedMs When the caller first asked, if it asks again: it keeps its place, and takes that of a later one
   *   if too many wait.
   */
  async acquire(
    key: string,
    waitMs = this.#limits.waitMs,
    arrivedMs = performance.now(),
  ): Promise<ReleaseSlot | LimitReached> {
    const state = this.#stateOf(key)
    const reached = this.#limitReached(state)
    if (reached === undefined) return this.#takeSlot(key, state)
    const { maxWaiting, maxWaitingPerKey } = this.#limits
    const isKeyFull = state.waiters.length >= maxWaitingPerKey
    const isFull = isKeyFull || this.waiting >= maxWaiting
    const replaced = isFull ? this.#findReplaced(key, state, { arrivedMs, isKeyFull }) : undefined
    if ((isFull && !replaced) || this.#isStopped || waitMs <= 0) return reached
    const { promise, resolve } = Promise.withResolvers<ReleaseSlot | LimitReached>()
    const waiter: Waiter = { arrivedMs, resolve }
    state.waiters.splice(1 + state.waiters.findLastIndex((other) => other.arrivedMs <= arrivedMs), 0, waiter)
    this.waiting += 1
    this.#update(key, state)
    if (replaced) this.#refuse(...replaced)
    const timer = setTimeout(() => this.#refuse(key, state, waiter), waitMs)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
    }
  }

  /**
   * Works in a slot, for which it waits like `acquire`, and which it releases once the work has settled.
   * @throws What `refuse` returns, if there is no slot; nothing was done then.
   */
  async run<Result>(
    key: string,
    work: () => Result | Promise<Result>,
    { waitMs, refuse }: { readonly waitMs?: number; readonly refuse: (reached: LimitReached) => Error },
  ): Promise<Result> {
    const slot = await this.acquire(key, waitMs)
    if (typeof slot === 'string') throw refuse(slot)
    try {
      return await work()
    } finally {
      slot()
    }
  }

  /** Ends all waiting: callers that wait, and later ones that would have to, get the limit that was reached. */
  stopWaiting(): void {
    this.#isStopped = true
    for (const [key, state] of this.#states) {
      for (let [waiter] = state.waiters; waiter; [waiter] = state.waiters) this.#refuse(key, state, waiter)
    }
  }

  #limitReached({ inFlight }: KeyState): LimitReached | undefined {
    const { total, perKey, leavesFree = false } = this.#limits
    const free = total - this.inFlight
    if (inFlight >= perKey || (leavesFree && free > 0 && inFlight >= free)) return 'key_limit'
    return free <= 0 ? 'total_limit' : undefined
  }

  /** The key's state; `#update` stores it when it has something to keep. */
  #stateOf(key: string): KeyState {
    return this.#states.get(key) ?? { inFlight: 0, waiters: [] }
  }

  /**
   * The last waiting caller of the key if it arrived later; else, unless the key has too many itself, that of the key
   * with the most, if it still has as many without it as this key with one more.
   */
  #findReplaced(
    key: string,
    state: KeyState,
    { arrivedMs, isKeyFull }: { arrivedMs: number; isKeyFull: boolean },
  ): readonly [string, KeyState, Waiter] | undefined {
    const last = state.waiters.at(-1)
    if (last && last.arrivedMs > arrivedMs) return [key, state, last]
    let most: readonly [string, KeyState] | undefined
    let count = isKeyFull ? Number.POSITIVE_INFINITY : state.waiters.length + 1
    for (const entry of this.#states) {
      const { length } = entry[1].waiters
      if (length > count) [most, count] = [entry, length]
    }
    return most && [...most, most[1].waiters.at(-1)!]
  }

  /** Call after every change of the key's slots or waiting callers. */
  #update(key: string, state: KeyState): void {
    if (state.inFlight === 0 && state.waiters.length === 0) this.#states.delete(key)
    else this.#states.set(key, state)
    if (state.waiters.length > 0 && state.inFlight < this.#limits.perKey) this.#ready.add(key)
    else this.#ready.delete(key)
  }

  #takeSlot(key: string, state: KeyState): ReleaseSlot {
    this.inFlight += 1
    state.inFlight += 1
    this.#update(key, state)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      this.inFlight -= 1
      state.inFlight -= 1
      this.#update(key, state)
      this.#serveNextWaiter()
    }
  }

  #serveNextWaiter(): void {
    if (this.inFlight >= this.#limits.total) return
    for (const key of this.#ready) {
      const state = this.#stateOf(key)
      const [waiter] = state.waiters
      if (!waiter) continue
      const release = this.#takeSlot(key, state)
      // Moves the key to the end of the order, behind the keys that were not served yet.
      this.#ready.delete(key)
      this.#removeWaiter(key, state, waiter)
      waiter.resolve(release)
      return
    }
  }

  #refuse(key: string, state: KeyState, waiter: Waiter): void {
    waiter.resolve(this.#limitReached(state) ?? 'total_limit')
    this.#removeWaiter(key, state, waiter)
  }

  #removeWaiter(key: string, state: KeyState, waiter: Waiter): void {
    const index = state.waiters.indexOf(waiter)
    if (index === -1) return
    state.waiters.splice(index, 1)
    this.waiting -= 1
    this.#update(key, state)
  }
}
