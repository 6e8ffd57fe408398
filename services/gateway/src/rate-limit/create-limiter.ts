import { createRequire } from 'node:module'
import { describeError, type Logger } from '@workflow-service/service-kit'
import type * as ioredis from 'ioredis'
import type * as flexible from 'rate-limiter-flexible'
import { LRUCache } from 'lru-cache'
import RateLimiterMemory from 'rate-limiter-flexible/lib/RateLimiterMemory.js'

/** Counts requests by name in fixed windows. */
export interface Limiter {
  /** Resolves to the window's state, or rejects with it when the limit is exceeded. */
  consume(name: string): Promise<flexible.RateLimiterRes>
  close(): void
}

/** The number of requests per window. */
export interface Quota {
  readonly limit: number
  readonly windowSeconds: number
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

const KEY_PREFIX = 'rate'
/** Names in memory, about 760 bytes each. */
const MAX_NAMES = 100_000
/** How long a request waits for the store before this process decides alone. */
const STORE_TIMEOUT_MS = 100

const require = createRequire(import.meta.url)

/**
 * Counts in memory. Beyond the maximum, the least recently used name is evicted, which resets its count: requests from
 * ever new addresses must not exhaust the memory.
 */
class LocalLimiter extends RateLimiterMemory {
  readonly #names: LRUCache<string, true>

  constructor({ limit, windowSeconds }: Quota, maxNames = MAX_NAMES) {
    super({ points: limit, duration: windowSeconds, keyPrefix: KEY_PREFIX })
    this.#names = new LRUCache({ max: maxNames, dispose: (_value, name) => void this.delete(name) })
  }

  override consume(name: string, points?: number): Promise<flexible.RateLimiterRes> {
    this.#names.set(name, true)
    return super.consume(name, points)
  }
}

/** Makes a limiter that counts in this process only. */
export function createLocalLimiter(quota: Quota, maxNames?: number): Limiter {
  const limiter = new LocalLimiter(quota, maxNames)
  return { consume: (name) => limiter.consume(name), close: () => {} }
}

/**
 * Makes a limiter whose counts all gateways share in Redis or Valkey. While the store does not answer, each gateway counts
 * for itself, so callers are still limited and notice nothing.
 */
export function createSharedLimiter(options: SharedLimiterOptions): Limiter {
  const { quota, onLocalDecision } = options
  // Loaded only here: a gateway without a store starts without the client.
  const RateLimiterRedis = require('rate-limiter-flexible/lib/RateLimiterRedis.js') as typeof flexible.RateLimiterRedis
  class FallbackLimiter extends LocalLimiter {
    override consume(name: string, points?: number): Promise<flexible.RateLimiterRes> {
      onLocalDecision()
      return super.consume(name, points)
    }
  }
  const redis = connect(options)
  const limiter = new RateLimiterRedis({
    points: quota.limit,
    duration: quota.windowSeconds,
    keyPrefix: KEY_PREFIX,
    storeClient: redis,
    rejectIfRedisNotReady: true,
    insuranceLimiter: new FallbackLimiter(quota),
  })
  return {
    consume: (name) => limiter.consume(name),
    close: () => {
      redis.removeAllListeners('close')
      redis.disconnect()
    },
  }
}

/** Connects, and keeps reconnecting; reports each change of the connection once. */
function connect({ url, logger, onStoreState }: SharedLimiterOptions): ioredis.Redis {
  const { Redis } = require('ioredis') as typeof ioredis
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
    if (isUp) logger.info('connected to the rate limit store')
    else logger.warn({ error: describeError(error) }, 'the rate limit store is unavailable; each gateway counts alone')
  }
  redis.on('ready', () => report(true))
  redis.on('error', (error: Error) => report(false, error))
  redis.on('close', () => report(false, new Error('The connection was closed')))
  return redis
}
