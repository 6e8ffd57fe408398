import { LRUCache } from 'lru-cache'

/** A bucket: how many tokens it holds when full, and in how many seconds it fills. */
export interface Quota {
  readonly limit: number
  readonly windowSeconds: number
}

/** What came of asking for one token. */
export interface RateVerdict {
  readonly isAllowed: boolean
  /** Whole tokens left. */
  readonly remaining: number
  /** Until the bucket is full again. */
  readonly resetSeconds: number
  /** Until there is a token again; 0 when there is one. */
  readonly retrySeconds: number
}

/** Token buckets, one for each name. */
export interface RateLimiter {
  /** Takes one token out of the bucket. Never rejects. */
  take(name: string): RateVerdict | Promise<RateVerdict>
  close(): Promise<void>
}

/** Buckets that one process remembers; beyond it the one not used for longest counts as full again. */
const MAX_BUCKETS = 100_000
/** What is lost to rounding, in milliseconds. */
const TOLERANCE_MS = 0.001

/**
 * Token buckets in this process. A bucket is kept as the time at which it will be full again (the generic cell rate
 * algorithm): it fills evenly, a full one takes a burst of `limit`, and one number holds it.
 */
export function createLocalRateLimiter(quota: Quota, now: () => number = () => performance.now()): RateLimiter {
  const fullAt = new LRUCache<string, number>({ max: MAX_BUCKETS })
  const windowMs = quota.windowSeconds * 1_000
  const perTokenMs = windowMs / quota.limit
  return {
    take: (name) => {
      const at = now()
      const before = Math.max(fullAt.get(name) ?? at, at)
      const after = before + perTokenMs
      const isAllowed = after - at <= windowMs + TOLERANCE_MS
      if (isAllowed) fullAt.set(name, after)
      return toVerdict(quota, isAllowed, (isAllowed ? after : before) - at)
    },
    close: async () => {},
  }
}

/** The verdict from how long the bucket takes to be full, in milliseconds. */
export function toVerdict({ limit, windowSeconds }: Quota, isAllowed: boolean, untilFullMs: number): RateVerdict {
  const windowMs = windowSeconds * 1_000
  const perTokenMs = windowMs / limit
  return {
    isAllowed,
    remaining: Math.max(0, Math.floor((windowMs - untilFullMs + TOLERANCE_MS) / perTokenMs)),
    resetSeconds: Math.max(1, Math.ceil(untilFullMs / 1_000)),
    retrySeconds: isAllowed ? 0 : Math.max(1, Math.ceil((untilFullMs + perTokenMs - windowMs) / 1_000)),
  }
}
