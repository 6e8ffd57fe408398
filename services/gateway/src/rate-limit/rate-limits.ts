import { ApiError, type Logger, mapMaybePromise } from '@workflow-service/service-kit'
import {
  createLocalLimiter,
  createSharedLimiter,
  type LimitState,
  type Quota,
} from '@workflow-service/service-kit/rate-limit'
import type { Response } from 'express'
import type { GatewayConfig } from '../config.ts'
import type { GatewayMetrics } from '../gateway-metrics.ts'

/** What is counted: the requests of an API key, or the failed authentications of an address. */
type RatePolicy = 'requests' | 'failed-authentications'

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
    consume: (policy: RatePolicy, name: string) =>
      mapMaybePromise(limiter.consume(`${policy}:${name}`), (state) => toDecision(policy, quota, state)),
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

/**
 * Adds the rate limit's headers to the answer. Undefined when there is no limit.
 * @throws ApiError 429 with `Retry-After` when the limit is exceeded.
 */
export function applyRateLimit(res: Response, decision: RateDecision | undefined): void {
  if (!decision) return
  ;(res.locals.answerHeaders ??= []).push(...decision.headers)
  if (decision.isAllowed) return
  const seconds = decision.resetSeconds
  const message = `Too many requests. Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`
  throw new ApiError('rate_limited', message, { headers: { 'Retry-After': String(seconds) } })
}
