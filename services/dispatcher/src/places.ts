/** Why there was no place: too many for this one source, or for the process. */
export type Full = 'full_for_key' | 'full'

/** Gives the place back; more than once does no harm. */
export type Release = () => void

/** A bound on how much goes on at once, in all and for each key. */
export interface Places {
  /**
   * A place for the key. Whoever waits is served in the order of arrival, but a key that is full holds up nobody else.
   * Resolves with why not when none came free in time.
   */
  take(key: string): Promise<Release | Full>
  readonly taken: number
  readonly waiting: number
}

interface Waiter {
  key: string
  serve: (answer: Release | Full) => void
}

/** As many places as the options say. `waitMs` is how long one waits for a place. */
export function createPlaces(options: { total: number; perKey: number; waitMs: number }): Places {
  const takenByKey = new Map<string, number>()
  const waiters = new Set<Waiter>()
  let taken = 0

  const fullness = (key: string): Full | undefined => {
    if ((takenByKey.get(key) ?? 0) >= options.perKey) return 'full_for_key'
    return taken >= options.total ? 'full' : undefined
  }
  const occupy = (key: string): Release => {
    taken += 1
    takenByKey.set(key, (takenByKey.get(key) ?? 0) + 1)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      taken -= 1
      const left = (takenByKey.get(key) ?? 1) - 1
      if (left === 0) takenByKey.delete(key)
      else takenByKey.set(key, left)
      serveNext()
    }
  }
  // One place came free, so one waiter at most can go on.
  const serveNext = (): void => {
    if (taken >= options.total) return
    for (const waiter of waiters) {
      if (fullness(waiter.key) !== undefined) continue
      waiters.delete(waiter)
      waiter.serve(occupy(waiter.key))
      return
    }
  }
  return {
    take: async (key) => {
      if (fullness(key) === undefined) return occupy(key)
      const { promise, resolve } = Promise.withResolvers<Release | Full>()
      const waiter: Waiter = { key, serve: resolve }
      waiters.add(waiter)
      const timer = setTimeout(() => {
        waiters.delete(waiter)
        resolve(fullness(key) ?? occupy(key))
      }, options.waitMs)
      try {
        return await promise
      } finally {
        clearTimeout(timer)
      }
    },
    get taken() {
      return taken
    },
    get waiting() {
      return waiters.size
    },
  }
}
