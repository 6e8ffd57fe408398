import type { Logger } from '@workflow-service/service-kit'
import {
  createLocalLimiter,
  createSharedLimiter,
  type LimitState,
  type Quota,
} from '@workflow-service/service-kit/rate-limit'
import type { GatewayConfig } from '../config.ts'
import type { GatewayMetrics } from '../gateway-metrics.ts'

/** What is counted: the requests of an API key, or the failed authentications of an address. */
export type RatePolicy = 'requests' | 'failed-authentications'

/** The outcome of counting one request. */
export interface RateDecision {
  readonly isAllowed: boolean
  /** Whole seconds until the window ends, at least 1. */
  readonly resetSeconds: number
  /** Names and values in turn. */
  readonly headers: readonly string[]
  readonly state: LimitState
}

const WINDOW_SECONDS = 60

/**
 * Both policies have the limit of RATE_LIMIT_PER_MINUTE. They are counted in one store if RATE_LIMIT_STORE_URL is set.
 */
export function createRateLimits(options: {
  config: Pick<GatewayConfig, 'rateLimitPerMinute' | 'rateLimitStoreUrl'>
  logger: Logger
  metrics: Pick<GatewayMetrics, 'rateLimitStoreUp' | 'rateLimitLocalDecisions'>
}) {
  const { config, logger, metrics } = options
  metrics.rateLimitStoreUp.set(1)
  if (config.rateLimitPerMinute === 0) return { consume: () => undefined, giveBack: () => {}, close: () => {} }
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
    /** Counts one request of an API key's id or an address. Undefined without a limit, a promise with a store. */
    consume: (policy: RatePolicy, name: string) => {
      const state = limiter.consume(`${policy}:${name}`)
      return state instanceof Promise
        ? state.then((counted) => toDecision(policy, quota, counted))
        : toDecision(policy, quota, state)
    },
    /** Takes back the decision's count. Best effort: a store that is unavailable keeps it until the window ends. */
    giveBack: (policy: RatePolicy, name: string, { state }: RateDecision) =>
      limiter.giveBack(`${policy}:${name}`, state),
    close: () => limiter.close(),
  }
}

/**
 * Adds the headers of draft-ietf-httpapi-ratelimit-headers-10: `r` is what is left, `t` the seconds until the reset.
 */
function toDecision(policy: RatePolicy, { limit, windowSeconds }: Quota, state: LimitState): RateDecision {
  const { isAllowed, remaining, resetMs } = state
  const resetSeconds = Math.max(1, Math.ceil(resetMs / 1_000))
  const headers = [
    'RateLimit-Policy',
    `"${policy}";q=${limit};w=${windowSeconds}`,
    'RateLimit',
    `"${policy}";r=${remaining};t=${resetSeconds}`,
  ]
  return { isAllowed, resetSeconds, headers, state }
}
