import type { Logger } from '@workflow-service/service-kit'
import type { RateLimiterRes } from 'rate-limiter-flexible'
import type { GatewayConfig } from '../config.ts'
import type { GatewayMetrics } from '../gateway-metrics.ts'
import { createLocalLimiter, createSharedLimiter, type Quota } from './create-limiter.ts'

/** What is counted: the requests of an API key, or the failed authentications of an address. */
export type RatePolicy = 'requests' | 'failed-authentications'

/** The outcome of counting one request. */
export interface RateDecision {
  readonly isAllowed: boolean
  /** Whole seconds until the window ends, at least 1. */
  readonly resetSeconds: number
  /** Names and values in turn. */
  readonly headers: readonly string[]
}

/** The rate limits of the contract README, "Limits". */
export interface RateLimits {
  /** Counts one request of an API key's id or an address. Undefined when there is no limit. */
  consume(policy: RatePolicy, name: string): Promise<RateDecision> | undefined
  close(): void
}

const WINDOW_SECONDS = 60

/** Both policies have the limit of RATE_LIMIT_PER_MINUTE. They are counted in one store if RATE_LIMIT_STORE_URL is set. */
export function createRateLimits(options: {
  config: Pick<GatewayConfig, 'rateLimitPerMinute' | 'rateLimitStoreUrl'>
  logger: Logger
  metrics: Pick<GatewayMetrics, 'rateLimitStoreUp' | 'rateLimitLocalDecisions'>
}): RateLimits {
  const { config, logger, metrics } = options
  metrics.rateLimitStoreUp.set(1)
  if (config.rateLimitPerMinute === 0) return { consume: () => undefined, close: () => {} }
  const quota: Quota = { limit: config.rateLimitPerMinute, windowSeconds: WINDOW_SECONDS }
  const limiter =
    config.rateLimitStoreUrl === undefined
      ? createLocalLimiter(quota)
      : createSharedLimiter({
          url: config.rateLimitStoreUrl,
          quota,
          logger,
          onStoreState: (isUp) => metrics.rateLimitStoreUp.set(isUp ? 1 : 0),
          onLocalDecision: () => metrics.rateLimitLocalDecisions.inc(),
        })
  return {
    consume: (policy, name) =>
      limiter.consume(`${policy}:${name}`).then(
        (state) => toDecision(policy, quota, state, true),
        (state: RateLimiterRes | Error) => {
          if (state instanceof Error) throw state
          return toDecision(policy, quota, state, false)
        },
      ),
    close: () => limiter.close(),
  }
}

/** Adds the headers of draft-ietf-httpapi-ratelimit-headers-10: `r` is what is left, `t` the seconds until the reset. */
function toDecision(
  policy: RatePolicy,
  { limit, windowSeconds }: Quota,
  { remainingPoints, msBeforeNext }: RateLimiterRes,
  isAllowed: boolean,
): RateDecision {
  const resetSeconds = Math.max(1, Math.ceil(msBeforeNext / 1_000))
  const headers = [
    'RateLimit-Policy',
    `"${policy}";q=${limit};w=${windowSeconds}`,
    'RateLimit',
    `"${policy}";r=${remainingPoints};t=${resetSeconds}`,
  ]
  return { isAllowed, resetSeconds, headers }
}
