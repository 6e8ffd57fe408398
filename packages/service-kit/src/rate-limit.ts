import { createRequire } from 'node:module'
import { isIPv6 } from 'node:net'
import type * as ioredis from 'ioredis'
import ipaddr from 'ipaddr.js'
import { LRUCache } from 'lru-cache'
import type * as flexible from 'rate-limiter-flexible'
import { ApiError } from './http/errors.ts'
import { describeError, type Logger } from './logger.ts'

/** The number of requests allowed per window. */
export interface Quota {
  readonly limit: number
  readonly windowSeconds: number
}

/** The state of a name's window after a request was counted. */
export interface LimitState {
  readonly isAllowed: boolean
  readonly remaining: number
  /** Milliseconds until the window ends. */
  readonly resetMs: number
  /** By `performance.now()`, when the store's window ends; undefined for a request that this process counted. */
  readonly storedUntilMs?: number
  /** By its clock, when the window of this process ends; undefined for a request that the store counted. */
  readonly countedUntilMs?: number
}

/** Counts requests by name in fixed windows. */
export interface Limiter {
  consume(name: string): LimitState | Promise<LimitState>
  /** Takes back the count that `consume` returned this state for. */
  giveBack(name: string, state: LimitState): void
  close(): void
}

/** Creates a 429 that says when to try again, for programs and people. `what` is a sentence. */
export function rateLimited(what: string, { resetMs }: Pick<LimitState, 'resetMs'>): ApiError {
  const seconds = secondsUntilReset(resetMs)
  const [count, unit] = seconds > 90 ? [Math.ceil(seconds / 60), 'minute'] : [seconds, 'second']
  return new ApiError('rate_limited', `${what} Try again in ${count} ${unit}${count === 1 ? '' : 's'}.`, {
    headers: { 'Retry-After': String(seconds) },
  })
}

/** Whole seconds, at least one, after which the window has ended. */
export function secondsUntilReset(resetMs: number): number {
  return Math.max(1, Math.ceil(resetMs / 1_000))
}

/** Bounds the memory that requests from ever new addresses can take. */
const MAX_NAMES = 100_000

/**
 * Creates a limiter that counts in this process. Beyond `maxNames`, the least recently used name is evicted, which
 * resets its count. It is synchronous, unlike the one in memory of rate-limiter-flexible: with that one, a read took
 * about 20 % more CPU.
 */
export function createLocalLimiter(
  { limit, windowSeconds }: Quota,
  { maxNames = MAX_NAMES, now = () => performance.now() }: { maxNames?: number; now?: () => number } = {},
) {
  // With `max`, the cache reserves 2.6 MiB at once.
  const windows = new LRUCache<string, { count: number; readonly endMs: number }>({
    maxSize: maxNames,
    sizeCalculation: () => 1,
  })
  return {
    consume: (name: string): LimitState => {
      // Whole milliseconds: rounding errors of fractions would make a full window longer than it is.
      const nowMs = Math.floor(now())
      let window = windows.get(name)
      if (!window || window.endMs <= nowMs) {
        window = { count: 0, endMs: nowMs + windowSeconds * 1_000 }
        windows.set(name, window)
      }
      window.count += 1
      const { count, endMs } = window
      const remaining = Math.max(0, limit - count)
      return { isAllowed: count <= limit, remaining, resetMs: endMs - nowMs, countedUntilMs: endMs }
    },
    // A later window would have a count less than requests, and allow one too many.
    giveBack: (name: string, { countedUntilMs }: LimitState): void => {
      const window = windows.get(name)
      if (window && window.endMs === countedUntilMs && window.count > 0) window.count -= 1
    },
    close: () => {},
  }
}

export interface SharedLimiterOptions {
  readonly url: string
  readonly quota: Quota
  readonly logger: Logger
  /** Called when the connection to the store is established or lost. */
  readonly onStoreState: (isUp: boolean) => void
  /** Called for each decision that is made without the store. */
  readonly onLocalDecision: () => void
}

/** How long a request waits for the store before this process decides alone. */
const STORE_TIMEOUT_MS = 100

/**
 * Creates a limiter whose counts all processes share in Redis or Valkey. While the store does not answer, each process
 * counts for itself, so callers are still limited and notice nothing.
 */
export function createSharedLimiter(options: SharedLimiterOptions): Limiter {
  const { quota, onLocalDecision } = options
  // Loaded only here: a process without a store starts without them. The main module would also load 20 other stores.
  const require = createRequire(import.meta.url)
  const RateLimiterRedis = require('rate-limiter-flexible/lib/RateLimiterRedis.js') as typeof flexible.RateLimiterRedis
  const { Redis } = require('ioredis') as typeof ioredis
  const redis = connect(Redis, options)
  const shared = new RateLimiterRedis({
    storeClient: redis,
    points: quota.limit,
    duration: quota.windowSeconds,
    keyPrefix: 'rate',
    rejectIfRedisNotReady: true,
  })
  const local = createLocalLimiter(quota)
  return {
    consume: async (name) => {
      try {
        return toState(await shared.consume(name), true)
      } catch (reason) {
        // The library rejects with the window's state when the limit is exceeded.
        if (!(reason instanceof Error)) return toState(reason as flexible.RateLimiterRes, false)
        onLocalDecision()
        return local.consume(name)
      }
    },
    // Elsewhere or in a later window, the store would have a count less than requests, and allow one too many.
    giveBack: (name, state) => {
      const { storedUntilMs } = state
      if (storedUntilMs === undefined) local.giveBack(name, state)
      else if (performance.now() < storedUntilMs) shared.reward(name).catch(() => {})
    },
    close: () => {
      redis.removeAllListeners('close')
      redis.disconnect()
    },
  }
}

function toState({ remainingPoints, msBeforeNext }: flexible.RateLimiterRes, isAllowed: boolean): LimitState {
  const storedUntilMs = performance.now() + msBeforeNext
  return { isAllowed, remaining: remainingPoints, resetMs: msBeforeNext, storedUntilMs }
}

/** Connects, and keeps reconnecting; reports each change of the connection once. */
function connect(Redis: typeof ioredis.Redis, { url, logger, onStoreState }: SharedLimiterOptions): ioredis.Redis {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: STORE_TIMEOUT_MS,
    // Drops a connection on which a store answers nothing, so that only its first requests wait for it.
    socketTimeout: STORE_TIMEOUT_MS,
    connectTimeout: 2_000,
    retryStrategy: (attempt) => Math.min(attempt * 100, 2_000),
  })
  let wasUp: boolean | undefined
  const report = (isUp: boolean, error?: Error): void => {
    if (wasUp === isUp) return
    wasUp = isUp
    onStoreState(isUp)
    if (isUp) logger.info('rate_limit_store.connected')
    else logger.warn({ error: describeError(error) }, 'rate_limit_store.unavailable')
  }
  redis.on('ready', () => report(true))
  redis.on('error', (error: Error) => report(false, error))
  redis.on('close', () => report(false, new Error('The connection was closed')))
  return redis
}

/** An address with a port, as in the X-Forwarded-For of Azure's Application Gateway: each connection has another. */
const WITH_PORT = /^(?:(\d+(?:\.\d+){3})|\[(.+)\]):\d+$/

/**
 * Returns an IPv4 address, or the network of an IPv6 address. A subscriber gets a /64 at least and a /48 at most (RIPE
 * 690): failures are counted by /64, and turns are by /48, in which one subscriber may have 65,536 of the others.
 */
export function networkOf(caller: string, prefixBits: 64 | 48 = 64): string {
  const [, ipv4, ipv6] = WITH_PORT.exec(caller) ?? []
  const address = ipv4 ?? ipv6 ?? caller
  // The library creates an error for '', the address of a connection that has been reset.
  if (!isIPv6(address) || !ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, prefixBits / 16).join(':') : parsed.toString()
}
