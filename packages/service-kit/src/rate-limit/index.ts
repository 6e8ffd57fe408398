/** Rate limits of the services that people and programs outside can reach. */
export { createLocalLimiter, type Limiter, type LimitState, type Quota } from './local-limiter.ts'
export { networkOf } from './network-of.ts'
export { createSharedLimiter, type SharedLimiterOptions } from './shared-limiter.ts'
