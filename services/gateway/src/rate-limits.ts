import type { Logger } from '@workflow-service/service-kit'
import type { GatewayConfig } from './config.ts'
import type { GatewayMetrics } from './gateway-metrics.ts'
import { createLocalRateLimiter, type Quota, type RateVerdict } from './rate-limiter.ts'
import { createSharedRateLimiter } from './shared-rate-limiter.ts'

/** What is counted: the requests of a key, and the failed authentications of an address. */
export type RatePolicy = 'requests' | 'failed-authentications'

/** A verdict with the headers that tell of it. */
export interface RateDecision extends Omit<RateVerdict, 'remaining' | 'resetSeconds'> {
  /** Names and values in turn. */
  readonly headers: readonly string[]
}

/** The rate limits of contract 7, by policy. */
export interface RateLimits {
  /** Counts one; undefined when there is no limit. `name` is a key's id or an address. */
  take(policy: RatePolicy, name: string): RateDecision | undefined | Promise<RateDecision>
  close(): Promise<void>
}

const WINDOW_SECONDS = 60

/** Both policies have the limit of RATE_LIMIT_PER_MINUTE, and share one store. */
export function createRateLimits(options: {
  config: Pick<GatewayConfig, 'rateLimitPerMinute' | 'rateLimitStoreUrl'>
  logger: Logger
  metrics: Pick<GatewayMetrics, 'rateLimitStoreUp' | 'rateLimitLocalDecisions'>
}): RateLimits {
  const { config, logger, metrics } = options
  metrics.rateLimitStoreUp.set(1)
  if (config.rateLimitPerMinute === 0) return { take: () => undefined, close: async () => {} }
  const quota: Quota = { limit: config.rateLimitPerMinute, windowSeconds: WINDOW_SECONDS }
  const limiter =
    config.rateLimitStoreUrl === undefined
      ? createLocalRateLimiter(quota)
      : createSharedRateLimiter({
          url: config.rateLimitStoreUrl,
          quota,
          logger,
          watch: {
            onState: (isUp) => metrics.rateLimitStoreUp.set(isUp ? 1 : 0),
            onLocalDecision: () => metrics.rateLimitLocalDecisions.inc(),
          },
        })
  const describe = (policy: RatePolicy, verdict: RateVerdict): RateDecision => ({
    isAllowed: verdict.isAllowed,
    retrySeconds: verdict.retrySeconds,
    headers: toHeaders(policy, quota, verdict),
  })
  return {
    take: (policy, name) => {
      const verdict = limiter.take(`${policy}:${name}`)
      return verdict instanceof Promise ? verdict.then((it) => describe(policy, it)) : describe(policy, verdict)
    },
    close: () => limiter.close(),
  }
}

/** draft-ietf-httpapi-ratelimit-headers-10: `r` is what is left, `t` the seconds until all of `q` is there again. */
function toHeaders(policy: RatePolicy, { limit, windowSeconds }: Quota, verdict: RateVerdict): string[] {
  return [
    'RateLimit-Policy',
    `"${policy}";q=${limit};w=${windowSeconds}`,
    'RateLimit',
    `"${policy}";r=${verdict.remaining};t=${verdict.resetSeconds}`,
  ]
}
