import type { Logger } from '@workflow-service/service-kit'
import {
  createLocalLimiter,
  createSharedLimiter,
  type Limiter,
  type LimitState,
  rateLimited,
  secondsUntilReset,
} from '@workflow-service/service-kit/rate-limit'
import type { Response } from 'express'
import type { GatewayConfig } from '../config.ts'
import type { GatewayMetrics } from '../gateway-metrics.ts'

/** What is counted: the requests of an API key, or the failed authentications of an address. */
type RatePolicy = 'requests' | 'failed-authentications'

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
  const { rateLimitPerMinute: limit, rateLimitStoreUrl: url } = config
  const quota = { limit, windowSeconds: WINDOW_SECONDS }
  metrics.rateLimitStoreUp.set(1)
  const createLimiter = (): Limiter => {
    if (url === undefined) return createLocalLimiter(quota)
    return createSharedLimiter({
      url,
      quota,
      logger,
      onStoreState: (isUp) => metrics.rateLimitStoreUp.set(isUp ? 1 : 0),
      onLocalDecision: () => metrics.rateLimitLocalDecisions.inc(),
    })
  }
  const limiter = limit === 0 ? undefined : createLimiter()
  return {
    /** Counts one request of an API key's id or an address. Undefined without a limit, a promise with a store. */
    consume: (policy: RatePolicy, name: string) => limiter?.consume(`${policy}:${name}`),
    /** Takes back a count. Best effort: a store that is unavailable keeps it until the window ends. */
    giveBack: (policy: RatePolicy, name: string, state: LimitState) => limiter?.giveBack(`${policy}:${name}`, state),
    /**
     * Adds the headers of draft-ietf-httpapi-ratelimit-headers-10 to the response: `r` is what is left, `t` the seconds
     * until the reset. `state` is undefined without a limit.
     * @throws ApiError 429 with `Retry-After` when the limit is exceeded.
     */
    apply(res: Response, policy: RatePolicy, state: LimitState | undefined): void {
      if (!state) return
      const headers = (res.locals.responseHeaders ??= [])
      headers.push('RateLimit-Policy', `"${policy}";q=${limit};w=${WINDOW_SECONDS}`)
      headers.push('RateLimit', `"${policy}";r=${state.remaining};t=${secondsUntilReset(state.resetMs)}`)
      if (!state.isAllowed) throw rateLimited('Too many requests.', state)
    },
    close: () => limiter?.close(),
  }
}
