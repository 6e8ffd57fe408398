import { createRequire } from 'node:module'
import { describeError, type Logger } from '../logger.ts'
import type * as ioredis from 'ioredis'
import type * as flexible from 'rate-limiter-flexible'
import { createLocalLimiter, type Limiter, type LimitState, type Quota } from './local-limiter.ts'

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
    giveBack: (name, { storedUntilMs }) => {
      if (storedUntilMs === undefined) local.giveBack(name)
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
