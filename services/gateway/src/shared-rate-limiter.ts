import { createRequire } from 'node:module'
import { describeError, type Logger } from '@workflow-service/service-kit'
import type * as ioredis from 'ioredis'
import type { ClientContext, Result } from 'ioredis'
import { createLocalRateLimiter, type Quota, type RateLimiter, toVerdict } from './rate-limiter.ts'

/** Hears how the store does. */
export interface StoreWatch {
  onState(isUp: boolean): void
  /** A decision was made without the store. */
  onLocalDecision(): void
}

export interface SharedRateLimiterOptions {
  url: string
  quota: Quota
  logger: Logger
  watch: StoreWatch
}

/** How long a request waits for the store before this process decides by itself. */
const ANSWER_TIMEOUT_MS = 100
/** How long the store is left alone after it failed, so that not every request waits for it. */
const PAUSE_MS = 1_000

// The bucket as in the local limiter, by the store's own clock: gateways' clocks may differ.
const TAKE = `
  local time = redis.call('TIME')
  local now = time[1] * 1000 + time[2] / 1000
  local window = tonumber(ARGV[1])
  local before = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now)
  local after = before + window / tonumber(ARGV[2])
  if after - now > window + 0.001 then
    return {0, tostring(before - now)}
  end
  redis.call('SET', KEYS[1], string.format('%.3f', after), 'PX', math.ceil(after - now))
  return {1, tostring(after - now)}`

declare module 'ioredis' {
  interface RedisCommander<Context extends ClientContext> {
    takeToken(key: string, windowMs: number, limit: number): Result<[isAllowed: number, untilFullMs: string], Context>
  }
}

/**
 * Token buckets that all gateways share in Redis or Valkey. While the store does not answer, this process limits by itself:
 * a caller is limited per gateway then, and is never told of the store.
 */
export function createSharedRateLimiter({ url, quota, logger, watch }: SharedRateLimiterOptions): RateLimiter {
  const local = createLocalRateLimiter(quota)
  // Loaded here, so that a gateway without a store boots without it.
  const { Redis } = createRequire(import.meta.url)('ioredis') as typeof ioredis
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: ANSWER_TIMEOUT_MS,
    connectTimeout: 2_000,
    retryStrategy: (attempt) => Math.min(attempt * 100, 2_000),
    scripts: { takeToken: { lua: TAKE, numberOfKeys: 1 } },
  })
  let isUp: boolean | undefined
  let pausedUntil = 0
  const tell = (nowUp: boolean, error?: unknown): void => {
    if (isUp === nowUp) return
    isUp = nowUp
    watch.onState(nowUp)
    if (nowUp) logger.info('the rate limit store answers')
    else logger.warn({ error: describeError(error) }, 'the rate limit store does not answer; limiting per gateway')
  }
  redis.on('ready', () => (pausedUntil = 0))
  redis.on('error', (error: Error) => tell(false, error))
  return {
    take: async (name) => {
      if (performance.now() >= pausedUntil) {
        try {
          const [isAllowed, untilFullMs] = await redis.takeToken(
            `rate:${name}`,
            quota.windowSeconds * 1_000,
            quota.limit,
          )
          tell(true)
          return toVerdict(quota, isAllowed === 1, Number(untilFullMs))
        } catch (error) {
          pausedUntil = performance.now() + PAUSE_MS
          tell(false, error)
        }
      }
      watch.onLocalDecision()
      return local.take(name)
    },
    close: async () => redis.disconnect(),
  }
}
